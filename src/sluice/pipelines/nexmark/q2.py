"""Query 2: the bids on a few auctions. Stateless and very selective: the sink has next to nothing to do.

One auction in 123 is asked for, as in the Nexmark suite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import SINK_RATE, SOURCE_RATE, STATELESS_BUSY_CEILING, flink_like, true_rate
from sluice.registry import parameter


@pipeline("q2")
@dataclass(frozen=True, kw_only=True)
class Query2:
    """Nexmark 2: the bids on selected auctions (source, filter, sink)."""

    peak_rate: float = parameter(2_200_000.0, "bids/s at load 1")

    def source_shares(self) -> Mapping[str, float]:
        return {"bids_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(
                    name="bids_source",
                    capacity=Linear(true_rate(SOURCE_RATE, STATELESS_BUSY_CEILING)),
                    net_bytes_per_record=100,
                ),
                SimulatedOperator(
                    name="filter",
                    capacity=Linear(true_rate(625_000, STATELESS_BUSY_CEILING)),
                    selectivity=1 / 123,
                    net_bytes_per_record=1,
                ),
                SimulatedOperator(
                    name="sink",
                    capacity=Linear(true_rate(SINK_RATE, STATELESS_BUSY_CEILING)),
                ),
            ),
            edges=chain("bids_source", "filter", "sink"),
            settings=flink_like(STATELESS_BUSY_CEILING),
            initial_parallelism={"bids_source": 5, "filter": 5, "sink": 5},
        )
