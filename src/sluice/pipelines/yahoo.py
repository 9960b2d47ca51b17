"""The Yahoo streaming benchmark: which campaigns were looked at. Six operators, most of them cheap.

Events are parsed, views kept (one event in three), projected, joined with their campaign and counted per campaign and
ten seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import flink_like, true_rate
from sluice.registry import parameter


@pipeline("yahoo")
@dataclass(frozen=True, kw_only=True)
class Yahoo:
    """Ad views per campaign (source, parse, filter, project, join, windowed count)."""

    peak_rate: float = parameter(120_000.0, "ad events/s at load 1")
    window_s: float = parameter(10.0, "length of the counting window")

    def source_shares(self) -> Mapping[str, float]:
        return {"source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(name="source", capacity=Linear(true_rate(80_000)), net_bytes_per_record=250),
                SimulatedOperator(name="parse", capacity=Linear(true_rate(25_000)), net_bytes_per_record=200),
                SimulatedOperator(
                    name="filter", capacity=Linear(true_rate(60_000)), selectivity=1 / 3, net_bytes_per_record=70
                ),
                SimulatedOperator(name="project", capacity=Linear(true_rate(50_000)), net_bytes_per_record=40),
                SimulatedOperator(name="join", capacity=Linear(true_rate(15_000)), net_bytes_per_record=60),
                SimulatedOperator(
                    name="count",
                    capacity=Linear(true_rate(20_000)),
                    selectivity=0.01,
                    window_s=self.window_s,
                    state_bytes_per_record=30,
                    state_ttl_s=self.window_s,
                    io_bytes_per_record=300,
                ),
            ),
            edges=chain("source", "parse", "filter", "project", "join", "count"),
            settings=flink_like(),
            initial_parallelism=dict.fromkeys(("source", "parse", "filter", "project", "join", "count"), 2),
        )
