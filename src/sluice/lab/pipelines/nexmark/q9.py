"""Query 9: the winning bid of every auction.

Stresses a join by time whose state holds every open auction and its bids, and a maximum per auction that is known only
when it closes. As in the suite; of equal bids the earliest wins. Not in the thesis: the simulator's costs are of the
order of query 3's and not calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluice.lab.pipelines.base import pipeline
from sluice.lab.pipelines.nexmark.winning_bids import WinningBidsQuery
from sluice.lab.simulator import SimulatedJob
from sluice.spark.pipeline.job import SparkJob


@pipeline("q9")
@dataclass(frozen=True, kw_only=True)
class Query9(WinningBidsQuery):
    """Nexmark 9: winning bids (two sources, join, maximum, sink)."""

    def simulated(self) -> SimulatedJob:
        return self.simulated_job()

    def spark(self) -> SparkJob:
        job = self.builder("q9")
        answer = self.winners(job)
        return self.spark_job(job, answer)
