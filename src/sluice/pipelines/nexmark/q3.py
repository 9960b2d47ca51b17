"""Query 3: sellers of some states and what they offer. A join that keeps all it has seen: large state.

The thesis runs it at 3,000 to 33,000 records/s and keeps records for at least five minutes (7.3.2); both streams are
driven at that rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.model import Edge
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import flink_like, true_rate
from sluice.registry import parameter


@pipeline("q3")
@dataclass(frozen=True, kw_only=True)
class Query3:
    """Nexmark 3: join auctions with sellers of some states (two sources, filter, join, sink)."""

    peak_rate: float = parameter(33_000.0, "auctions/s, and persons/s, at load 1")

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
                    name="filter",
                    capacity=Linear(true_rate(80_000)),
                    selectivity=0.25,
                    net_bytes_per_record=50,
                ),
                SimulatedOperator(
                    name="join",
                    capacity=Linear(true_rate(12_000)),
                    selectivity=0.2,
                    state_bytes_per_record=500,
                    state_ttl_s=300,
                    io_bytes_per_record=2_000,
                    net_bytes_per_record=60,
                ),
                SimulatedOperator(
                    name="sink",
                    capacity=Linear(true_rate(100_000)),
                ),
            ),
            edges=(
                Edge(source="auction_source", target="join"),
                *chain("person_source", "filter", "join", "sink"),
            ),
            settings=flink_like(),
            initial_parallelism={"auction_source": 10, "person_source": 10, "filter": 10, "join": 10, "sink": 10},
        )
