"""Query 11: how many bids a user made in one session.

Stresses session windows: state per user, windows of any length, output when users go quiet. A session ends after ten
seconds without a bid (thesis 7.3.3), as in the suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import SESSION_BUSY_CEILING, true_rate
from sluice.lab.pipelines.nexmark.base import BidsQuery, calibrated_bids_chain
from sluice.lab.pipelines.standard import ON_TIME, scale_parameter
from sluice.lab.simulator import PowerLaw, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q11")
@dataclass(frozen=True, kw_only=True)
class Query11(BidsQuery):
    """Nexmark 11: bids per user session (source, session window, sink)."""

    peak_rate: float = parameter(2_200_000.0, "bids/s at load 1")
    gap_s: float = parameter(10.0, "gap that ends a session")
    spark_scale: float = scale_parameter(0.002)

    def simulated(self) -> SimulatedJob:
        return calibrated_bids_chain(
            SimulatedOperator(
                name="session_window",
                capacity=PowerLaw(true_rate(250_000, SESSION_BUSY_CEILING), 0.85),
                selectivity=0.1,
                state_bytes_per_record=200,
                state_ttl_s=self.gap_s,
                io_bytes_per_record=500,
                net_bytes_per_record=10,
            ),
            initial=10,
            busy_ceiling=SESSION_BUSY_CEILING,
        )

    def spark(self) -> SparkJob:
        return self.spark_job("q11", "session_window", partial(bids_per_session, gap_s=self.gap_s), watermark=ON_TIME)


def bids_per_session(bids: DataFrame, *, gap_s: float) -> DataFrame:
    from pyspark.sql.functions import count, session_window

    sessions = bids.groupBy(session_window("at", f"{gap_s} seconds"), "bidder").agg(count("*").alias("bids"))
    return sessions.selectExpr("bidder", "bids", "session_window.start AS began", "session_window.end AS ended")
