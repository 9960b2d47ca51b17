"""Query 1: every bid's price in euros. Stateless, one record in, one out: the plain speed of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import SINK_RATE, SOURCE_RATE, STATELESS_BUSY_CEILING, flink_like, true_rate
from sluice.registry import parameter


@pipeline("q1")
@dataclass(frozen=True, kw_only=True)
class Query1:
    """Nexmark 1: convert every bid's price (source, map, sink)."""

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
                    name="map",
                    capacity=Linear(true_rate(575_000, STATELESS_BUSY_CEILING)),
                    net_bytes_per_record=100,
                ),
                SimulatedOperator(
                    name="sink",
                    capacity=Linear(true_rate(SINK_RATE, STATELESS_BUSY_CEILING)),
                ),
            ),
            edges=chain("bids_source", "map", "sink"),
            settings=flink_like(STATELESS_BUSY_CEILING),
            initial_parallelism={"bids_source": 5, "map": 5, "sink": 5},
        )
