"""WordCount: lines into words, words into running counts. One record in, several out, then state per word.

Rates of the order Dragster uses (its table 2): one instance of the counter takes about as many words as one
instance of the splitter emits lines times the words per line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluice.engines.simulator import Linear, PowerLaw, SimulatedJob, SimulatedOperator, chain
from sluice.engines.spark.job import SparkJob
from sluice.engines.spark.pipeline import Pipeline
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import flink_like, true_rate
from sluice.registry import parameter
from sluice.workloads.records import record_integers, record_uniform

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

VOCABULARY = 2000
SOURCE_RATE, SPLITTER_RATE, COUNTER_RATE = 60_000, 22_000, 100_000


@pipeline("wordcount")
@dataclass(frozen=True, kw_only=True)
class WordCount:
    """Count words (source, splitter, counter)."""

    peak_rate: float = parameter(100_000.0, "lines/s at load 1")
    words_per_line: float = parameter(5.0, "words in a line, on average")
    spark_scale: float = parameter(0.02, "rates on Spark as a share of the simulator's, to suit two cores")
    paced: bool = parameter(True, "on Spark: hold every slot to its share of the simulator's rate")

    def source_shares(self) -> Mapping[str, float]:
        return {"source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(name="source", capacity=Linear(true_rate(SOURCE_RATE)), net_bytes_per_record=40),
                SimulatedOperator(
                    name="splitter",
                    capacity=PowerLaw(true_rate(SPLITTER_RATE), 0.95),
                    selectivity=self.words_per_line,
                    net_bytes_per_record=60,
                ),
                SimulatedOperator(
                    name="counter",
                    capacity=PowerLaw(true_rate(COUNTER_RATE), 0.9),
                    state_bytes_per_record=20,
                    state_ttl_s=600,
                    io_bytes_per_record=100,
                ),
            ),
            edges=chain("source", "splitter", "counter"),
            settings=flink_like(),
            initial_parallelism={"source": 1, "splitter": 1, "counter": 1},
        )

    def spark(self) -> SparkJob:
        job = Pipeline("wordcount")
        lines = job.source("lines", "line STRING", generate=self._lines)
        source = job.operator("source", _read, lines, slot_rate=self._slot_rate(SOURCE_RATE))
        words = job.operator("splitter", _split, source, slot_rate=self._slot_rate(SPLITTER_RATE))
        counts = job.operator("counter", _count, words, slot_rate=self._slot_rate(COUNTER_RATE), output_mode="update")
        job.sink("counts", counts)
        return SparkJob(
            pipeline=job,
            peak_rates={"lines": self.peak_rate * self.spark_scale},
            initial_parallelism={"source": 1, "splitter": 1, "counter": 1},
        )

    def _slot_rate(self, rate: float) -> float | None:
        return rate * self.spark_scale if self.paced else None

    def _lines(self, first: int, count: int, _time_s: float, seed: int) -> pa.Table:
        """Lines of 1 to twice the mean number of words; the k-th most frequent word is k times rarer than the first."""
        import pyarrow as pa

        longest = max(1, round(2 * self.words_per_line) - 1)
        lengths = 1 + record_integers(first, count, below=longest, seed=seed)
        ranks = np.stack(
            [VOCABULARY ** record_uniform(first, count, seed=seed, column=1 + place) for place in range(longest)],
            axis=1,
        ).astype(np.int64)
        lines = [" ".join(f"w{rank}" for rank in row[:length]) for row, length in zip(ranks, lengths, strict=True)]
        return pa.table({"line": pa.array(lines, pa.string())})


def _read(lines: DataFrame) -> DataFrame:
    return lines.where("line <> ''")


def _split(source: DataFrame) -> DataFrame:
    return source.selectExpr("explode(split(line, ' ')) AS word")


def _count(words: DataFrame) -> DataFrame:
    return words.groupBy("word").count()
