"""Query 3: sellers of some states and what they offer.

Stresses a join that keeps all it has seen: large state, costly to move. Sellers in Oregon, Idaho or California are
joined with their auctions of one category. The thesis runs it at 3,000 to 33,000 records/s and keeps records for at
most five minutes (7.3.2); the original keeps them for ever. On the simulator both streams come at that rate; on Spark
persons come at a third of the auctions' rate, as in the suite, or sellers would be forgotten before their auctions
open.
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


@pipeline("q3")
@dataclass(frozen=True, kw_only=True)
class Query3(SellersQuery):
    """Nexmark 3: join auctions with sellers of some states (two sources, filter, join, sink)."""

    lifetime_s: float = parameter(300.0, "how long persons and auctions wait for each other")

    def simulated(self) -> SimulatedJob:
        return self.simulated_job(
            SimulatedOperator(
                name="filter",
                capacity=Linear(true_rate(80_000)),
                selectivity=0.25,
                net_bytes_per_record=50,
            ),
            SimulatedOperator(
                name="join",
                capacity=Linear(true_rate(12_000)),
                selectivity=0.2,
                state_bytes_per_record=500,
                state_ttl_s=300,
                io_bytes_per_record=2_000,
                net_bytes_per_record=60,
            ),
        )

    def spark(self) -> SparkJob:
        job = self.builder("q3")
        auctions = self.auctions(job)
        local = job.add("filter", from_some_states, self.persons(job))
        join = partial(with_their_auctions, lifetime_s=self.lifetime_s)
        return self.spark_job(job, job.add("join", join, auctions, local, watermark=ON_TIME))


def from_some_states(persons: DataFrame) -> DataFrame:
    return persons.where("state IN ('OR', 'ID', 'CA')").select("id", "name", "city", "state", "at")


def with_their_auctions(auctions: DataFrame, persons: DataFrame, *, lifetime_s: float) -> DataFrame:
    from pyspark.sql.functions import expr

    matching = expr(
        f"seller = person.id AND auction.at BETWEEN person.at - INTERVAL {lifetime_s} SECONDS"
        f" AND person.at + INTERVAL {lifetime_s} SECONDS"
    )
    offered = auctions.where("category = 10").alias("auction")
    return offered.join(persons.alias("person"), matching).selectExpr("name", "city", "state", "auction.id AS auction")
