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


BUCKETS = 1024
"""Of persons in a window. One is searched record by record: with too few that takes long, with too many there are more
rows of state."""


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
    """Both streams grouped by window and bucket of persons; joined when a window ends. A person registers once.

    Spark's join of streams keeps every record as a row of state and looks at all of them in every batch; a bucket is
    one row for hundreds of records. Results come when Flink's join of windows gives them, at the window's end.
    """
    from pyspark.sql.functions import expr, window

    opened = "struct<person: bigint, auction: bigint, reserve: bigint>"
    joined = "struct<id: bigint, name: string>"
    sides = auctions.selectExpr(
        "at",
        f"pmod(seller, {BUCKETS}) AS bucket",
        "struct(seller AS person, id AS auction, reserve) AS opened",
        f"cast(null AS {joined}) AS joined",
    ).unionByName(
        persons.selectExpr(
            "at",
            f"pmod(id, {BUCKETS}) AS bucket",
            f"cast(null AS {opened}) AS opened",
            "struct(id, name) AS joined",
        )
    )
    # lists leave nulls out: each record is in the one of its side
    grouped = sides.groupBy(window("at", f"{window_s} seconds"), "bucket").agg(
        expr("collect_list(opened) AS opened"), expr("map_from_entries(collect_list(joined)) AS names")
    )
    each = grouped.selectExpr("window.start AS at", "names", "inline(opened)")
    return each.where("map_contains_key(names, person)").selectExpr(
        "person", "names[person] AS name", "auction", "reserve", "at"
    )
