"""Query 5: the auction with the most bids of late.

Stresses a sliding window with a counter per auction, and output in bursts. The thesis describes a window of an hour
(5.4.2) and runs one of five minutes, sliding by one (7.3.3), at 10,000 to 110,000 bids/s. Between two slides the sink
sees nothing: its busy share is 0, and what it could do is unknown. Of several auctions with the same number of bids the
original gives all, this one the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.calibration import true_rate
from sluice.lab.pipelines.nexmark.base import BidsQuery, bids_chain
from sluice.lab.pipelines.standard import ON_TIME
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator
from sluice.registry import parameter
from sluice.spark.pipeline.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pipeline("q5")
@dataclass(frozen=True, kw_only=True)
class Query5(BidsQuery):
    """Nexmark 5: hot auctions in a sliding window (source, sliding window, sink)."""

    slide_s: float = parameter(60.0, "time between two results")
    window_s: float = parameter(300.0, "length of the window")

    def simulated(self) -> SimulatedJob:
        return bids_chain(
            SimulatedOperator(
                name="sliding_window",
                capacity=Linear(true_rate(45_000)),
                selectivity=0.01,
                window_s=self.slide_s,
                state_bytes_per_record=40,
                state_ttl_s=self.window_s,
                io_bytes_per_record=1_000,
                net_bytes_per_record=1,
            ),
            initial=10,
        )

    def spark(self) -> SparkJob:
        return self.spark_job(
            "q5",
            "sliding_window",
            partial(hottest_auctions, window_s=self.window_s, slide_s=self.slide_s),
            watermark=ON_TIME,
        )


def hottest_auctions(bids: DataFrame, *, window_s: float, slide_s: float) -> DataFrame:
    from pyspark.sql.functions import count, expr, window

    per_auction = bids.groupBy(window("at", f"{window_s} seconds", f"{slide_s} seconds"), "auction")
    counted = per_auction.agg(count("*").alias("bids"))
    # the greatest pair: most bids first, then the lowest number
    most = counted.groupBy("window").agg(expr("max(struct(bids, -auction AS minus_auction)) AS most"))
    return most.selectExpr("window.end AS at", "-most.minus_auction AS auction", "most.bids AS bids")
