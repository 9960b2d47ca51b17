"""Query 7: the highest bid of every period.

Stresses an aggregation to a single result: all bids of a period meet in one place, more instances help only before
it. The original's period is a minute, the suite's ten seconds, as here. Of several highest bids the original gives
all, this one that of the lowest bidder and auction. Not in the thesis: the simulator's costs follow query 5 and are
not calibrated.
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


@pipeline("q7")
@dataclass(frozen=True, kw_only=True)
class Query7(BidsQuery):
    """Nexmark 7: the highest bid per period (source, tumbling window, sink)."""

    window_s: float = parameter(10.0, "length of a period")

    def simulated(self) -> SimulatedJob:
        return bids_chain(
            SimulatedOperator(
                name="highest",
                capacity=Linear(true_rate(60_000)),
                selectivity=0.0001,
                window_s=self.window_s,
                state_bytes_per_record=0.01,
                state_ttl_s=self.window_s,
                io_bytes_per_record=10,
                net_bytes_per_record=1,
            ),
            initial=5,
        )

    def spark(self) -> SparkJob:
        return self.spark_job("q7", "highest", partial(highest_bids, window_s=self.window_s), watermark=ON_TIME)


def highest_bids(bids: DataFrame, *, window_s: float) -> DataFrame:
    from pyspark.sql.functions import expr, window

    best = expr("max(struct(price, -bidder AS minus_bidder, -auction AS minus_auction)) AS best")
    return (
        bids.groupBy(window("at", f"{window_s} seconds"))
        .agg(best)
        .selectExpr(
            "window.end AS at", "best.price AS price", "-best.minus_bidder AS bidder", "-best.minus_auction AS auction"
        )
    )
