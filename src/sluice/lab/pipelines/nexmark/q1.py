"""Query 1: every bid's price in euros.

Stresses the plain speed of an engine: stateless, one record in, one out. Differs from the original in nothing but the
width of a bid (no channel, link and padding).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import SINK_RATE, SOURCE_RATE, STATELESS_BUSY_CEILING, true_rate
from sluice.lab.pipelines.nexmark.simulated import bids_chain
from sluice.lab.pipelines.scaled import Scaled
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q1")
@dataclass(frozen=True, kw_only=True)
class Query1(Scaled):
    """Nexmark 1: convert every bid's price (source, map, sink)."""

    peak_rate: float = parameter(2_200_000.0, "bids/s at load 1")
    spark_scale: float = parameter(0.01, "rates on Spark as a share of the simulator's, to suit two cores")
    hot_share: float = parameter(0.0, "share of the records that concern hot keys; none in the thesis")

    def source_shares(self) -> Mapping[str, float]:
        return {"bids_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return bids_chain(
            SimulatedOperator(
                name="map",
                capacity=Linear(true_rate(575_000, STATELESS_BUSY_CEILING)),
                net_bytes_per_record=100,
            ),
            initial=5,
            source_rate=SOURCE_RATE,
            sink_rate=SINK_RATE,
            busy_ceiling=STATELESS_BUSY_CEILING,
        )

    def spark(self) -> SparkJob:
        from sluice.lab.generator.nexmark import BID_SCHEMA, Bids

        job = self.job("q1")
        bids = job.pipeline.source("bids", BID_SCHEMA, generate=Bids(hot_share=self.hot_share))
        euros = job.add("map", to_euros, job.source("bids_source", bids))
        return SparkJob(pipeline=job.sink(euros), peak_rates={"bids": self.peak_rate * self.spark_scale})


def to_euros(bids: DataFrame) -> DataFrame:
    """The suite's rate of exchange; prices are in cents."""
    return bids.selectExpr("auction", "bidder", "price * 0.908D AS price", "at")
