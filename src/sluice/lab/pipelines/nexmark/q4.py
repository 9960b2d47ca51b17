"""Query 4: the average price of closed auctions in each category.

Stresses three operators with state behind each other: a join by time, a maximum per auction, and a running average
over five categories, which no parallelism beyond five can speed up. As in the suite. Not in the thesis: the
simulator's costs are of the order of query 3's and not calibrated.
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


@pipeline("q4")
@dataclass(frozen=True, kw_only=True)
class Query4(WinningBidsQuery):
    """Nexmark 4: average closing price per category (two sources, join, maximum, average, sink)."""

    def simulated(self) -> SimulatedJob:
        return self.simulated_job(AVERAGE)

    def spark(self) -> SparkJob:
        job = self.builder("q4")
        answer = job.add("average", per_category, self.winners(job), output_mode="update")
        return self.spark_job(job, answer)


def per_category(winners: DataFrame) -> DataFrame:
    from pyspark.sql.functions import avg, count

    return winners.groupBy("category").agg(avg("price").alias("price"), count("*").alias("auctions"))
