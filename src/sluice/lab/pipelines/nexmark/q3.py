"""Query 3: sellers of some states and what they offer.

Stresses a join that keeps all it has seen: large state, costly to move. Sellers in Oregon, Idaho or California are
joined with their auctions of one category. The thesis runs it at 3,000 to 33,000 records/s and keeps records for at
most five minutes (7.3.2); the original keeps them for ever. On the simulator both streams come at that rate; on Spark
persons come at a third of the auctions' rate, as in the suite, or sellers would be forgotten before their auctions
open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import flink_like, true_rate
from sluice.lab.pipelines.nexmark.simulated import auction_source, person_source, sink
from sluice.lab.pipelines.scaled import ON_TIME, Scaled
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.model import Edge
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q3")
@dataclass(frozen=True, kw_only=True)
class Query3(Scaled):
    """Nexmark 3: join auctions with sellers of some states (two sources, filter, join, sink)."""

    peak_rate: float = parameter(33_000.0, "auctions/s, and persons/s, at load 1")
    lifetime_s: float = parameter(300.0, "how long persons and auctions wait for each other")
    spark_scale: float = parameter(0.1, "rates on Spark as a share of the simulator's, to suit two cores")
    hot_share: float = parameter(0.0, "share of the records that concern hot keys; none in the thesis")

    def source_shares(self) -> Mapping[str, float]:
        return {"auction_source": 1.0, "person_source": 1.0}

    def simulated(self) -> SimulatedJob:
        return SimulatedJob(
            operators=(
                auction_source(),
                person_source(),
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
                sink(),
            ),
            edges=(
                Edge(source="auction_source", target="join"),
                *chain("person_source", "filter", "join", "sink"),
            ),
            settings=flink_like(),
            initial_parallelism={"auction_source": 10, "person_source": 10, "filter": 10, "join": 10, "sink": 10},
        )

    def spark(self) -> SparkJob:
        from sluice.lab.generator import nexmark

        job = self.job("q3")
        auctions = job.pipeline.source(
            "auctions", nexmark.AUCTION_SCHEMA, generate=nexmark.Auctions(hot_share=self.hot_share)
        )
        persons = job.pipeline.source("persons", nexmark.PERSON_SCHEMA, generate=nexmark.Persons())
        auction_source = job.source("auction_source", auctions)
        local = job.add("filter", from_some_states, job.source("person_source", persons))
        joined = job.add(
            "join", partial(with_their_auctions, lifetime_s=self.lifetime_s), auction_source, local, watermark=ON_TIME
        )
        rate = self.peak_rate * self.spark_scale
        return SparkJob(
            pipeline=job.sink(joined),
            peak_rates={"auctions": rate, "persons": rate * nexmark.PERSONS / nexmark.AUCTIONS},
        )


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
