"""The auctions' winners, on which queries 4, 6 and 9 stand: every auction joined with the best bid while it was open.

Two operators, because Spark keeps the join's state by event time and the maximum's by closing time. An auction is
decided when the watermark is past its end. A batch of the join comes out in the order of its keys, not of time; while
it catches up, a batch that covers more event time than `patience_s` may decide auctions before all bids are in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.calibration import true_rate
from sluice.lab.pipelines.nexmark.base import NexmarkQuery, auction_source, bids_source, same_start, sink
from sluice.lab.pipelines.standard import ON_TIME, JobBuilder, scale_parameter
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator, chain
from sluice.model import Edge
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob
from sluice.spark.pipeline.specs import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AVERAGE = SimulatedOperator(
    name="average",
    capacity=Linear(true_rate(20_000)),
    state_bytes_per_record=1,
    state_ttl_s=600,
    io_bytes_per_record=100,
    net_bytes_per_record=20,
)
"""Of winning prices, by category or by seller."""


@dataclass(frozen=True, kw_only=True)
class WinningBidsQuery(NexmarkQuery):
    """Parameters and operators the three queries share. Auctions come at 3/46 of the bids' rate, as in the suite."""

    peak_rate: float = parameter(46_000.0, "bids/s at load 1")
    shortest_s: float = parameter(10.0, "shortest time an auction is open")
    longest_s: float = parameter(20.0, "longest time an auction is open")
    patience_s: float = parameter(10.0, "how much event time one batch of the join may cover, on Spark")
    spark_scale: float = scale_parameter(0.05)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.shortest_s <= self.longest_s:
            raise ValueError(f"shortest_s must be in (0, longest_s={self.longest_s:g}], got {self.shortest_s:g}")

    def source_shares(self) -> dict[str, float]:
        return {"bids_source": 1.0, "auction_source": 3 / 46}

    def simulated_job(self, *after: SimulatedOperator) -> SimulatedJob:
        """Sources, join and maximum, what comes after them in a chain, and a sink."""
        winner = SimulatedOperator(
            name="winner",
            capacity=Linear(true_rate(30_000)),
            selectivity=3 / 46,
            state_bytes_per_record=8,
            state_ttl_s=self.longest_s,
            io_bytes_per_record=300,
            net_bytes_per_record=4,
        )
        join = SimulatedOperator(
            name="join",
            capacity=Linear(true_rate(12_000)),
            selectivity=0.9,
            state_bytes_per_record=120,
            state_ttl_s=self.longest_s,
            io_bytes_per_record=1_500,
            net_bytes_per_record=60,
        )
        in_a_row = (join, winner, *after, sink())
        return same_start(
            (bids_source(), auction_source(), *in_a_row),
            (
                Edge(source="auction_source", target="join"),
                Edge(source="bids_source", target="join"),
                *chain(*(operator.name for operator in in_a_row)),
            ),
            initial=2,
        )

    def spark_job(self, job: JobBuilder, results: Dataset) -> SparkJob:
        from sluice.lab.generator.nexmark import AUCTIONS, BIDS

        rate = self.peak_rate * self.spark_scale
        return SparkJob(pipeline=job.sink(results), peak_rates={"bids": rate, "auctions": rate * AUCTIONS / BIDS})

    def winners(self, job: JobBuilder) -> Dataset:
        """Adds sources, join and maximum."""
        auctions = self.auctions(job, shortest_s=self.shortest_s, longest_s=self.longest_s)
        join = partial(bids_while_open, longest_s=self.longest_s)
        joined = job.add("join", join, auctions, self.bids(job), watermark=ON_TIME)
        # an auction's end is at most so far ahead of the bids: only then are all of its bids in
        delay_s = self.longest_s + self.patience_s
        return job.add("winner", best_bids, joined, watermark=("expires", f"{delay_s} seconds"))


def bids_while_open(auctions: DataFrame, bids: DataFrame, *, longest_s: float) -> DataFrame:
    from pyspark.sql.functions import expr

    # the second bound follows from the first; Spark needs it to know when state is over
    while_open = expr(
        "auction.id = bid.auction AND bid.at BETWEEN auction.at AND auction.expires"
        f" AND bid.at <= auction.at + INTERVAL {longest_s} SECONDS"
    )
    return (
        auctions.alias("auction")
        .join(bids.alias("bid"), while_open)
        .selectExpr("id AS auction", "seller", "category", "expires", "bidder", "price", "bid.at AS bid_at")
    )


def best_bids(joined: DataFrame) -> DataFrame:
    """The highest price; of equal ones the earliest, then the lowest bidder."""
    from pyspark.sql.functions import expr

    best = expr("max(struct(price, -unix_micros(bid_at) AS minus_at, -bidder AS minus_bidder)) AS best")
    return (
        joined.groupBy("auction", "seller", "category", "expires")
        .agg(best)
        .selectExpr("auction", "seller", "category", "expires", "-best.minus_bidder AS bidder", "best.price AS price")
    )
