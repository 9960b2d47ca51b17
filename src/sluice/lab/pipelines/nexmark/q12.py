"""Query 12: how many bids a user makes in ten seconds of the engine's own time.

Stresses windows in processing time: what belongs together depends on when it is read, so a backlog changes the answer
and only a user's total over all windows can be checked. On Spark the time of a record is that of its micro-batch. Not
in the thesis: the simulator's costs follow query 11 and are not calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import true_rate
from sluice.lab.pipelines.nexmark.simulated import bids_chain
from sluice.lab.pipelines.scaled import Scaled
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q12")
@dataclass(frozen=True, kw_only=True)
class Query12(Scaled):
    """Nexmark 12: bids per user and processing-time window (source, tumbling window, sink)."""

    peak_rate: float = parameter(110_000.0, "bids/s at load 1")
    window_s: float = parameter(10.0, "length of a window")
    spark_scale: float = parameter(0.05, "rates on Spark as a share of the simulator's, to suit two cores")
    hot_share: float = parameter(0.0, "share of the records that concern hot keys; none in the thesis")

    def source_shares(self) -> Mapping[str, float]:
        return {"bids_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return bids_chain(
            SimulatedOperator(
                name="tumbling_window",
                capacity=Linear(true_rate(50_000)),
                selectivity=0.1,
                window_s=self.window_s,
                state_bytes_per_record=60,
                state_ttl_s=self.window_s,
                io_bytes_per_record=300,
                net_bytes_per_record=10,
            ),
            initial=5,
        )

    def spark(self) -> SparkJob:
        from sluice.lab.generator.nexmark import BID_SCHEMA, Bids

        job = self.job("q12")
        bids = job.pipeline.source("bids", BID_SCHEMA, generate=Bids(hot_share=self.hot_share))
        counted = job.add(
            "tumbling_window", partial(bids_per_window, window_s=self.window_s), job.source("bids_source", bids)
        )
        return SparkJob(pipeline=job.sink(counted), peak_rates={"bids": self.peak_rate * self.spark_scale})


def bids_per_window(bids: DataFrame, *, window_s: float) -> DataFrame:
    from pyspark.sql.functions import count, current_timestamp, window

    read = bids.select("bidder", current_timestamp().alias("read_at")).withWatermark("read_at", "0 seconds")
    counted = read.groupBy(window("read_at", f"{window_s} seconds"), "bidder").agg(count("*").alias("bids"))
    return counted.selectExpr("bidder", "bids", "window.start AS began")
