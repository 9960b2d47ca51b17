"""WordCount: lines into words, words into running counts.

Stresses an operator with more output than input, then state per word that changes with every record. Rates of the order
Dragster uses (its table 2): one instance of the counter takes about as many words as one instance of the splitter emits
lines times the words per line. On Spark the counter emits every count that changed in a micro-batch, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import flink_like, true_rate
from sluice.lab.pipelines.standard import StandardPipeline, scale_parameter
from sluice.lab.simulator import Linear, PowerLaw, SimulatedJob, SimulatedOperator, chain
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("wordcount")
@dataclass(frozen=True, kw_only=True)
class WordCount(StandardPipeline):
    """Count words (source, splitter, counter)."""

    peak_rate: float = parameter(100_000.0, "lines/s at load 1")
    words_per_line: float = parameter(5.0, "words in a line, on average")
    spark_scale: float = scale_parameter(0.02)
    vocabulary: int = parameter(10_000, "on Spark: different words")
    skew: float = parameter(0.0, "on Spark: exponent of Zipf's law by which words are drawn; 0 draws all alike")

    def source_shares(self) -> Mapping[str, float]:
        return {"source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(name="source", capacity=Linear(true_rate(60_000)), net_bytes_per_record=40),
                SimulatedOperator(
                    name="splitter",
                    capacity=PowerLaw(true_rate(22_000), 0.95),
                    selectivity=self.words_per_line,
                    net_bytes_per_record=60,
                ),
                SimulatedOperator(
                    name="counter",
                    capacity=PowerLaw(true_rate(100_000), 0.9),
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
        from sluice.lab.generator.words import LINE_SCHEMA, Lines

        job = self.builder("wordcount")
        words = Lines(words_per_line=round(self.words_per_line), vocabulary=self.vocabulary, skew=self.skew)
        lines = job.pipeline.source("lines", LINE_SCHEMA, generate=words)
        split = job.add("splitter", into_words, job.source("source", lines))
        job.pipeline.sink("out", job.add("counter", count_words, split, output_mode="update"))
        return SparkJob(pipeline=job.pipeline, peak_rates={"lines": self.peak_rate * self.spark_scale})


def into_words(lines: DataFrame) -> DataFrame:
    return lines.selectExpr("explode(split(line, ' ')) AS word")


def count_words(words: DataFrame) -> DataFrame:
    return words.groupBy("word").count()
