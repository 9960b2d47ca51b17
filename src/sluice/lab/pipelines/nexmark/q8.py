"""Query 8: who registered and opened an auction within the same ten seconds.

Stresses a window join with small state. The thesis could not finish it (7.3, its cluster failed while scaling); the
rates are those of query 3, on Spark with persons at a third of the auctions' rate, as in the suite. As in the thesis'
implementation there is one result per auction, in the original one per seller.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import true_rate
from sluice.lab.pipelines.nexmark.base import SellersQuery
from sluice.lab.pipelines.standard import ON_TIME
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q8")
@dataclass(frozen=True, kw_only=True)
class Query8(SellersQuery):
    """Nexmark 8: new sellers in a tumbling window (two sources, window join, sink)."""

    window_s: float = parameter(10.0, "length of the window")

    def simulated(self) -> SimulatedJob:
        return self.simulated_job(
            SimulatedOperator(
                name="window_join",
                capacity=Linear(true_rate(20_000)),
                selectivity=0.1,
                window_s=self.window_s,
                state_bytes_per_record=350,
                state_ttl_s=self.window_s,
                io_bytes_per_record=800,
                net_bytes_per_record=30,
            )
        )

    def spark(self) -> SparkJob:
        job = self.builder("q8")
        join = partial(new_sellers, window_s=self.window_s)
        joined = job.add("window_join", join, self.auctions(job), self.persons(job), watermark=ON_TIME)
        return self.spark_job(job, joined)


def new_sellers(auctions: DataFrame, persons: DataFrame, *, window_s: float) -> DataFrame:
    from pyspark.sql.functions import expr, window

    opened = auctions.select(window("at", f"{window_s} seconds"), "seller", "id", "reserve").alias("opened")
    joined = persons.select(window("at", f"{window_s} seconds"), "id", "name").alias("joined")
    same = expr("opened.seller = joined.id AND opened.window = joined.window")
    return opened.join(joined, same).selectExpr(
        "joined.id AS person", "name", "opened.id AS auction", "reserve", "opened.window.start AS at"
    )
