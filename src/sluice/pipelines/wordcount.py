"""WordCount: lines into words, words into running counts. One record in, several out, then state per word.

Rates of the order Dragster uses (its table 2): one instance of the counter takes about as many words as one
instance of the splitter emits lines times the words per line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, PowerLaw, SimulatedJob, SimulatedOperator, chain
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import flink_like, true_rate
from sluice.registry import parameter


@pipeline("wordcount")
@dataclass(frozen=True, kw_only=True)
class WordCount:
    """Count words (source, splitter, counter)."""

    peak_rate: float = parameter(100_000.0, "lines/s at load 1")
    words_per_line: float = parameter(5.0, "words in a line, on average")

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
