"""Query 5: the auctions with the most bids of late. A sliding window with a counter per auction; output in bursts.

The thesis describes a window of an hour (5.4.2) and runs one of five minutes, sliding by one (7.3.3), at 10,000 to
110,000 bids/s. Between two slides the sink sees nothing: its busy share is 0, and what it could do is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import flink_like, true_rate
from sluice.registry import parameter


@pipeline("q5")
@dataclass(frozen=True, kw_only=True)
class Query5:
    """Nexmark 5: hot auctions in a sliding window (source, sliding window, sink)."""

    peak_rate: float = parameter(110_000.0, "bids/s at load 1")
    slide_s: float = parameter(60.0, "time between two results")
    window_s: float = parameter(300.0, "length of the window")

    def source_shares(self) -> Mapping[str, float]:
        return {"bids_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(
                    name="bids_source",
                    capacity=Linear(true_rate(150_000)),
                    net_bytes_per_record=100,
                ),
                SimulatedOperator(
                    name="sliding_window",
                    capacity=Linear(true_rate(45_000)),
                    selectivity=0.01,
                    window_s=self.slide_s,
                    state_bytes_per_record=40,
                    state_ttl_s=self.window_s,
                    io_bytes_per_record=1_000,
                    net_bytes_per_record=1,
                ),
                SimulatedOperator(
                    name="sink",
                    capacity=Linear(true_rate(150_000)),
                ),
            ),
            edges=chain("bids_source", "sliding_window", "sink"),
            settings=flink_like(),
            initial_parallelism={"bids_source": 10, "sliding_window": 10, "sink": 10},
        )
