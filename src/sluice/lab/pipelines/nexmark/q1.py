"""Query 1: every bid's price in euros.

Stresses the plain speed of an engine: stateless, one record in, one out. Differs from the original in nothing but the
width of a bid (no channel, link and padding).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import STATELESS_BUSY_CEILING, true_rate
from sluice.lab.pipelines.nexmark.base import BidsQuery, calibrated_bids_chain
from sluice.lab.pipelines.standard import scale_parameter
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q1")
@dataclass(frozen=True, kw_only=True)
class Query1(BidsQuery):
    """Nexmark 1: convert every bid's price (source, map, sink)."""

    peak_rate: float = parameter(2_200_000.0, "bids/s at load 1")
    spark_scale: float = scale_parameter(0.01)

    def simulated(self) -> SimulatedJob:
        return calibrated_bids_chain(
            SimulatedOperator(
                name="map",
                capacity=Linear(true_rate(575_000, STATELESS_BUSY_CEILING)),
                net_bytes_per_record=100,
            ),
            initial=5,
            busy_ceiling=STATELESS_BUSY_CEILING,
        )

    def spark(self) -> SparkJob:
        return self.spark_job("q1", "map", to_euros)


def to_euros(bids: DataFrame) -> DataFrame:
    """The suite's rate of exchange; prices are in cents."""
    return bids.selectExpr("auction", "bidder", "price * 0.908D AS price", "at")
