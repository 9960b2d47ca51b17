"""Query 2: the bids on a few auctions.

Stresses filtering: stateless and very selective, the sink has next to nothing to do. One auction in 123 is asked for,
as in the Nexmark suite; the original asks for five auctions by number.
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


@pipeline("q2")
@dataclass(frozen=True, kw_only=True)
class Query2(Scaled):
    """Nexmark 2: the bids on selected auctions (source, filter, sink)."""

    peak_rate: float = parameter(2_200_000.0, "bids/s at load 1")
    spark_scale: float = parameter(0.01, "rates on Spark as a share of the simulator's, to suit two cores")
    hot_share: float = parameter(0.0, "share of the records that concern hot keys; none in the thesis")

    def source_shares(self) -> Mapping[str, float]:
        return {"bids_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return bids_chain(
            SimulatedOperator(
                name="filter",
                capacity=Linear(true_rate(625_000, STATELESS_BUSY_CEILING)),
                selectivity=1 / 123,
                net_bytes_per_record=1,
            ),
            initial=5,
            source_rate=SOURCE_RATE,
            sink_rate=SINK_RATE,
            busy_ceiling=STATELESS_BUSY_CEILING,
        )

    def spark(self) -> SparkJob:
        from sluice.lab.generator.nexmark import BID_SCHEMA, Bids

        job = self.job("q2")
        bids = job.pipeline.source("bids", BID_SCHEMA, generate=Bids(hot_share=self.hot_share))
        selected = job.add("filter", on_selected_auctions, job.source("bids_source", bids))
        return SparkJob(pipeline=job.sink(selected), peak_rates={"bids": self.peak_rate * self.spark_scale})


def on_selected_auctions(bids: DataFrame) -> DataFrame:
    return bids.where("auction % 123 = 0").select("auction", "price")
