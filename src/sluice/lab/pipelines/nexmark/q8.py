"""Query 8: who registered and opened an auction within the same ten seconds.

Stresses a window join with small state. The thesis could not finish it (7.3, its cluster failed while scaling); the
rates are those of query 3, on Spark with persons at a third of the auctions' rate, as in the suite. As in the thesis'
implementation there is one result per auction, in the original one per seller.
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


@pipeline("q8")
@dataclass(frozen=True, kw_only=True)
class Query8(Scaled):
    """Nexmark 8: new sellers in a tumbling window (two sources, window join, sink)."""

    peak_rate: float = parameter(33_000.0, "auctions/s, and persons/s, at load 1")
    window_s: float = parameter(10.0, "length of the window")
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
                    name="window_join",
                    capacity=Linear(true_rate(20_000)),
                    selectivity=0.1,
                    window_s=self.window_s,
                    state_bytes_per_record=350,
                    state_ttl_s=self.window_s,
                    io_bytes_per_record=800,
                    net_bytes_per_record=30,
                ),
                sink(),
            ),
            edges=(
                Edge(source="auction_source", target="window_join"),
                *chain("person_source", "window_join", "sink"),
            ),
            settings=flink_like(),
            initial_parallelism={"auction_source": 10, "person_source": 10, "window_join": 10, "sink": 10},
        )

    def spark(self) -> SparkJob:
        from sluice.lab.generator import nexmark

        job = self.job("q8")
        auctions = job.pipeline.source(
            "auctions", nexmark.AUCTION_SCHEMA, generate=nexmark.Auctions(hot_share=self.hot_share)
        )
        persons = job.pipeline.source("persons", nexmark.PERSON_SCHEMA, generate=nexmark.Persons())
        joined = job.add(
            "window_join",
            partial(new_sellers, window_s=self.window_s),
            job.source("auction_source", auctions),
            job.source("person_source", persons),
            watermark=ON_TIME,
        )
        rate = self.peak_rate * self.spark_scale
        return SparkJob(
            pipeline=job.sink(joined),
            peak_rates={"auctions": rate, "persons": rate * nexmark.PERSONS / nexmark.AUCTIONS},
        )


def new_sellers(auctions: DataFrame, persons: DataFrame, *, window_s: float) -> DataFrame:
    from pyspark.sql.functions import expr, window

    opened = auctions.select(window("at", f"{window_s} seconds"), "seller", "id", "reserve").alias("opened")
    joined = persons.select(window("at", f"{window_s} seconds"), "id", "name").alias("joined")
    same = expr("opened.seller = joined.id AND opened.window = joined.window")
    return opened.join(joined, same).selectExpr(
        "joined.id AS person", "name", "opened.id AS auction", "reserve", "opened.window.start AS at"
    )
