"""Query 8: who registered and opened an auction within the same ten seconds. A window join with small state.

The thesis could not finish it (7.3, its cluster failed while scaling); the rates are those of query 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.model import Edge
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import flink_like, true_rate
from sluice.registry import parameter


@pipeline("q8")
@dataclass(frozen=True, kw_only=True)
class Query8:
    """Nexmark 8: new sellers in a tumbling window (two sources, window join, sink)."""

    peak_rate: float = parameter(33_000.0, "auctions/s, and persons/s, at load 1")
    window_s: float = parameter(10.0, "length of the window")

    def source_shares(self) -> Mapping[str, float]:
        return {"auction_source": 1.0, "person_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(
                    name="auction_source",
                    capacity=Linear(true_rate(60_000)),
                    net_bytes_per_record=500,
                ),
                SimulatedOperator(
                    name="person_source",
                    capacity=Linear(true_rate(60_000)),
                    net_bytes_per_record=200,
                ),
                SimulatedOperator(
                    name="window_join",
                    capacity=Linear(true_rate(20_000)),
                    selectivity=0.1,
                    window_s=self.window_s,
                    state_bytes_per_record=350,
                    state_ttl_s=self.window_s,
                    io_bytes_per_record=800,
                    net_bytes_per_record=30,
                ),
                SimulatedOperator(
                    name="sink",
                    capacity=Linear(true_rate(100_000)),
                ),
            ),
            edges=(
                Edge(source="auction_source", target="window_join"),
                *chain("person_source", "window_join", "sink"),
            ),
            settings=flink_like(),
            initial_parallelism={"auction_source": 10, "person_source": 10, "window_join": 10, "sink": 10},
        )
