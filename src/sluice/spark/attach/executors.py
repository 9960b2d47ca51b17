"""Executors of a running application: who is there, ask for more, let some go. The same calls on every cluster manager.

Scaling down drains. With `spark.decommission.enabled` an executor takes no new task, finishes those it has and hands
its blocks on. Without it an executor is let go only while no job runs, so that it holds no shuffle data anybody still
needs, and Spark's scheduler has the last word on whether it is busy. State of a streaming query is in its checkpoint:
no executor holds the only copy.

The wish is kept, not just told once: `keep` asks again for what is missing and lets go of what is too many, because a
restarted master has forgotten the limit, an executor may join late, and one that was busy may be free now.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from sluice.spark import internals
from sluice.spark.attach.application import ExecutorInfo, choose_to_remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = "driver"
ASK_AGAIN_S = 5.0
GAP_PATIENCE_S = 30.0
"""How long a surplus waits for a moment without jobs; queries that overlap all the time may have none."""


class Executors(Protocol):
    """What scaling needs of a cluster."""

    def present(self) -> list[ExecutorInfo]: ...

    def scale_to(self, count: int) -> str: ...

    def keep(self) -> list[ExecutorInfo]: ...


class ClusterExecutors:
    """The executors of this session's application, through its scheduler."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._store = internals.StatusStore(spark)
        self._drains = spark.conf.get("spark.decommission.enabled", "false") == "true"
        self._leaving: set[str] = set()
        self._wanted: int | None = None
        self._asked_s = 0.0
        self._surplus_since_s: float | None = None

    def present(self) -> list[ExecutorInfo]:
        """Active executors; those being decommissioned no longer count."""
        return [
            ExecutorInfo(
                executor_id=summary["id"],
                cores=summary["totalCores"],
                active_tasks=summary["activeTasks"],
                holds_blocks=summary["rddBlocks"] > 0,
                added_s=summary["addTime"] / 1000,
            )
            for summary in self._store.executors()
            if summary["id"] != DRIVER and summary["isActive"] and summary["id"] not in self._leaving
        ]

    def scale_to(self, count: int) -> str:
        """Want `count` executors from now on; one sentence says what was done at once."""
        if count < 1:
            raise ValueError(f"an application needs at least 1 executor, got {count}")
        here = len(self.present())
        self._wanted = count
        self._surplus_since_s = None
        try:
            self._ask(count)
        except Exception as error:  # `keep` asks again
            cause = internals.root_cause(error)
            return f"wants {count} executors, {here} are there; the cluster manager does not answer: {cause}"
        if here <= count:
            return f"asked for {count} executors, {here} are there"
        gone = self._let_go_surplus()
        ids = ", ".join(gone) or "none yet"
        waiting = here - count - len(gone)
        later = f"; {waiting} more when they are free" if waiting else ""
        return f"{'decommissioning' if self._drains else 'released'} executors: {ids}{later}"

    def keep(self) -> list[ExecutorInfo]:
        """Bring what is there closer to what is wanted, if anything ever was; those there."""
        here = self.present()
        if self._wanted is not None and len(here) != self._wanted:
            if len(here) > self._wanted:
                self._let_go_surplus()
            if time.monotonic() - self._asked_s > ASK_AGAIN_S:
                self._ask(self._wanted)
        return here

    def _ask(self, count: int) -> None:
        internals.request_executors(self._spark, count)
        self._asked_s = time.monotonic()

    def _let_go_surplus(self) -> list[str]:
        """Let go of executors beyond the wish, as far as that harms nobody now; the ids that went."""
        here = self.present()
        chosen = choose_to_remove(here, len(here) - (self._wanted or len(here)))
        if not chosen:
            self._surplus_since_s = None
            return []
        return self._decommission(chosen) if self._drains else self._kill_idle(chosen)

    def _decommission(self, chosen: list[ExecutorInfo]) -> list[str]:
        # the total is asked for separately: adjusting it here too would count each executor twice
        gone = internals.decommission_executors(self._spark, [executor.executor_id for executor in chosen])
        self._leaving.update(gone)
        return gone

    def _kill_idle(self, chosen: list[ExecutorInfo]) -> list[str]:
        now_s = time.monotonic()
        if self._surplus_since_s is None:
            self._surplus_since_s = now_s
        if self._store.has_active_jobs() and now_s - self._surplus_since_s < GAP_PATIENCE_S:
            return []
        return internals.kill_idle_executors(self._spark, [executor.executor_id for executor in chosen])


def total_cores(executors: list[ExecutorInfo]) -> int:
    return sum(executor.cores for executor in executors)
