"""Query 11: how many bids a user made in one session. Session windows: state per user, output when users go quiet.

A session ends after ten seconds without a bid (thesis 7.3.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.engines.simulator import Linear, PowerLaw, SimulatedJob, SimulatedOperator, chain
from sluice.pipelines.base import pipeline
from sluice.pipelines.calibration import SESSION_BUSY_CEILING, SINK_RATE, SOURCE_RATE, flink_like, true_rate
from sluice.registry import parameter


@pipeline("q11")
@dataclass(frozen=True, kw_only=True)
class Query11:
    """Nexmark 11: bids per user session (source, session window, sink)."""

    peak_rate: float = parameter(2_200_000.0, "bids/s at load 1")
    gap_s: float = parameter(10.0, "quiet time that ends a session")

    def source_shares(self) -> Mapping[str, float]:
        return {"bids_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                SimulatedOperator(
                    name="bids_source",
                    capacity=Linear(true_rate(SOURCE_RATE, SESSION_BUSY_CEILING)),
                    net_bytes_per_record=100,
                ),
                SimulatedOperator(
                    name="session_window",
                    capacity=PowerLaw(true_rate(250_000, SESSION_BUSY_CEILING), 0.85),
                    selectivity=0.1,
                    state_bytes_per_record=200,
                    state_ttl_s=self.gap_s,
                    io_bytes_per_record=500,
                    net_bytes_per_record=10,
                ),
                SimulatedOperator(
                    name="sink",
                    capacity=Linear(true_rate(SINK_RATE, SESSION_BUSY_CEILING)),
                ),
            ),
            edges=chain("bids_source", "session_window", "sink"),
            settings=flink_like(SESSION_BUSY_CEILING),
            initial_parallelism={"bids_source": 10, "session_window": 10, "sink": 10},
        )
