"""Query 12: how many bids a user makes in ten seconds of the engine's own time.

Stresses windows in processing time: what belongs together depends on when it is read, so a backlog changes the answer
and only a user's total over all windows can be checked. On Spark the time of a record is that of its micro-batch. Not
in the thesis: the simulator's costs follow query 11 and are not calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import true_rate
from sluice.lab.pipelines.nexmark.base import BidsQuery, bids_chain
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q12")
@dataclass(frozen=True, kw_only=True)
class Query12(BidsQuery):
    """Nexmark 12: bids per user and processing-time window (source, tumbling window, sink)."""

    window_s: float = parameter(10.0, "length of a window")

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
        return self.spark_job("q12", "tumbling_window", partial(bids_per_window, window_s=self.window_s))


def bids_per_window(bids: DataFrame, *, window_s: float) -> DataFrame:
    from pyspark.sql.functions import count, current_timestamp, window

    read = bids.select("bidder", current_timestamp().alias("read_at")).withWatermark("read_at", "0 seconds")
    counted = read.groupBy(window("read_at", f"{window_s} seconds"), "bidder").agg(count("*").alias("bids"))
    return counted.selectExpr("bidder", "bids", "window.start AS began")
