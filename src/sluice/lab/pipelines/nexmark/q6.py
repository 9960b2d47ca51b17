"""Query 6: the average price of each seller's last ten auctions.

Stresses state that holds a short history per key. The original is a sliding window over rows, which Spark does not have
on streams; the ten latest closings per seller are kept by an aggregate instead, and a new average comes whenever one
changes. Not in the thesis: the simulator's costs are of the order of query 3's and not calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.nexmark.winning_bids import AVERAGE, WinningBidsQuery
from sluice.lab.simulator import SimulatedJob
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q6")
@dataclass(frozen=True, kw_only=True)
class Query6(WinningBidsQuery):
    """Nexmark 6: average of the last ten prices per seller (two sources, join, maximum, average, sink)."""

    def simulated(self) -> SimulatedJob:
        return self.simulated_job(AVERAGE)

    def spark(self) -> SparkJob:
        job = self.builder("q6")
        answer = job.add("average", last_ten_per_seller, self.winners(job), output_mode="update")
        return self.spark_job(job, answer)


def last_ten_per_seller(winners: DataFrame) -> DataFrame:
    from pyspark.sql.functions import expr

    latest = winners.groupBy("seller").agg(expr("max_by(price, struct(expires, auction), 10) AS prices"))
    return latest.selectExpr(
        "seller",
        "aggregate(prices, 0L, (sum, price) -> sum + price) / size(prices) AS price",
        "size(prices) AS auctions",
    )
