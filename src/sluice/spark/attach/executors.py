"""Executors of a running application: observe, request, release. The same calls on every cluster manager.

Scaling down drains. With `spark.decommission.enabled` an executor takes no new task, finishes those it has and hands
its blocks on. Without it an executor is released only while no job runs, so that it holds no shuffle data anybody still
needs, and Spark's scheduler has the last word on whether it is busy. State of a streaming query is in its checkpoint:
no executor holds the only copy.

The target is reconciled every second: lost executors are requested again and surplus ones released, because a
restarted master has forgotten the limit, an executor may join late, and one that was busy may be free now. Such a
master may also have lost count of an executor that works: then it starts a fifth for every fifth that is released. So
where a surplus keeps coming back, fewer are requested than there shall be, until one is missing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from sluice.spark import internals
from sluice.spark.attach.application import ExecutorInfo, choose_to_remove
from sluice.spark.internals import executor_calls, status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUEST_AGAIN_S = 5.0
GAP_PATIENCE_S = 30.0
"""How long a surplus waits for a moment without jobs; queries that overlap all the time may have none."""
RETURNS = 2
"""Executors may join late; a surplus that comes back more often than that is replaced whenever it is released."""


class Executors(Protocol):
    """What scaling needs of a cluster."""

    def present(self) -> list[ExecutorInfo]: ...

    def reconcile(self, count: int, here: list[ExecutorInfo], *, others_work: bool = False) -> str | None: ...


class ClusterExecutors:
    """The executors of this session's application, through its scheduler."""

    def __init__(self, spark: SparkSession, *, drains: bool) -> None:
        """`drains`: executors are decommissioned, not killed."""
        self._spark = spark
        self._store = status.StatusStore(spark)
        self._drains = drains
        self._leaving: set[str] = set()
        self._requested: int | None = None
        self._requested_s = 0.0
        self._surplus_since_s: float | None = None
        self._releases = 0
        self._uncounted = 0
        """Executors that are here and that the cluster manager does not count."""

    def present(self) -> list[ExecutorInfo]:
        """Active executors; those being decommissioned no longer count."""
        summaries = self._store.executors()
        self._leaving &= {summary["id"] for summary in summaries}
        return [
            ExecutorInfo(
                executor_id=summary["id"],
                cores=summary["totalCores"],
                active_tasks=summary["activeTasks"],
                holds_blocks=summary["rddBlocks"] > 0,
                added_s=summary["addTime"] / 1000,
            )
            for summary in summaries
            if summary["id"] != internals.DRIVER and summary["isActive"] and summary["id"] not in self._leaving
        ]

    def has_jobs(self) -> bool:
        """Whether the application works at all, be it on a query or not."""
        return bool(self._store.active_job_ids())

    def reconcile(self, count: int, here: list[ExecutorInfo], *, others_work: bool = False) -> str | None:
        """Bring the executors that are here closer to `count`; a sentence about what was done, None for nothing.

        `others_work`: jobs run that are no query's. They are not short, as batches are, and shuffle data they lose may
        cost hours: without decommissioning nothing is released until they are over.
        """
        if count < 1:
            raise ValueError(f"an application needs at least 1 executor, got {count}")
        is_new = count != self._requested
        if is_new:
            self._requested, self._surplus_since_s, self._releases = count, None, 0
        elif len(here) == count:
            return None
        is_short = len(here) < count and self._uncounted > 0
        if is_short:
            self._uncounted = self._releases = 0
        if is_new or is_short or time.monotonic() - self._requested_s > REQUEST_AGAIN_S:
            try:
                self._request(count)
            except Exception as error:  # the next call requests again
                return f"the cluster manager does not answer: {internals.root_cause(error)}"
        if len(here) > count:
            return self._release_surplus(here, count, others_work=others_work)
        return f"requested {count} executors, {len(here)} are there" if is_new else None

    def _request(self, count: int) -> None:
        self._requested_s = time.monotonic()
        executor_calls.request_executors(self._spark, max(1, count - self._uncounted))

    def _release_surplus(self, here: list[ExecutorInfo], count: int, *, others_work: bool) -> str | None:
        """Release executors beyond the count, as far as that harms no running job."""
        chosen = choose_to_remove(here, len(here) - count)
        released = self._decommission(chosen) if self._drains else self._kill_idle(chosen, others_work=others_work)
        if not released:
            return None
        self._releases += 1
        if self._releases > RETURNS:
            self._uncounted += len(released)
            self._request(count)
        later = len(chosen) - len(released)
        return (
            f"{'decommissioning' if self._drains else 'released'} executors: {', '.join(released)}"
            f"{f'; {later} more when they are free' if later else ''}"
        )

    def _decommission(self, chosen: list[ExecutorInfo]) -> list[str]:
        # the total is requested separately: adjusting it here too would count each executor twice
        accepted = executor_calls.decommission_executors(self._spark, [executor.executor_id for executor in chosen])
        self._leaving.update(accepted)
        return accepted

    def _kill_idle(self, chosen: list[ExecutorInfo], *, others_work: bool) -> list[str]:
        now_s = time.monotonic()
        if self._surplus_since_s is None:
            self._surplus_since_s = now_s
        waits = others_work or now_s - self._surplus_since_s < GAP_PATIENCE_S
        if waits and self._store.active_job_ids():
            return []
        return executor_calls.kill_idle_executors(self._spark, [executor.executor_id for executor in chosen])


def total_cores(executors: list[ExecutorInfo]) -> int:
    return sum(executor.cores for executor in executors)
