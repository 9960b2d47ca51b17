"""Executors of a running application: who is there, ask for more, let some go. The same calls on every cluster manager.

Scaling down drains: with `spark.decommission.enabled` an executor takes no new task, finishes those it has and hands
its blocks on; without it only executors that run no task at that moment are let go; the rest stay until asked again.
State of a streaming query is in its checkpoint, so no executor holds the only copy of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from sluice.engines.spark.attach.application import ExecutorInfo, choose_to_remove
from sluice.errors import BadInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = "driver"


class Executors(Protocol):
    """What scaling needs of a cluster."""

    def present(self) -> list[ExecutorInfo]: ...

    def scale_to(self, count: int) -> str: ...


class ClusterExecutors:
    """The executors of this session's application, through its scheduler."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext._jsc.sc()
        self._jvm: Any = spark._jvm
        self._store: Any = self._context.statusStore()
        self._drains = spark.conf.get("spark.decommission.enabled", "false") == "true"
        self._leaving: set[str] = set()

    def present(self) -> list[ExecutorInfo]:
        """Active executors; those being decommissioned no longer count."""
        found = []
        summaries = self._store.executorList(True).iterator()
        while summaries.hasNext():
            summary = summaries.next()
            if summary.id() != DRIVER and summary.isActive() and summary.id() not in self._leaving:
                found.append(
                    ExecutorInfo(
                        executor_id=summary.id(),
                        cores=summary.totalCores(),
                        active_tasks=summary.activeTasks(),
                        holds_blocks=summary.rddBlocks() > 0,
                        added_s=summary.addTime().getTime() / 1000,
                    )
                )
        return found

    def scale_to(self, count: int) -> str:
        """Ask for `count` executors in all, and let go of those beyond; one sentence says what was done."""
        here = self.present()
        surplus = len(here) - count
        leaving = choose_to_remove(here, surplus) if surplus > 0 else []
        if leaving and not self._drains:
            leaving = [executor for executor in leaving if executor.active_tasks == 0]
        self._request_total(len(here) - len(leaving) if surplus > 0 else count)
        for executor in leaving:
            self._let_go(executor.executor_id)
        if surplus <= 0:
            return f"asked for {count} executors, {len(here)} are there"
        ids = ", ".join(executor.executor_id for executor in leaving) or "none"
        waiting = surplus - len(leaving)
        busy = f"; {waiting} more are busy and stay for now" if waiting else ""
        return f"{'decommissioning' if self._drains else 'released'} executors: {ids}{busy}"

    def _request_total(self, count: int) -> None:
        no_preference = self._jvm.PythonUtils.toScalaMap(self._jvm.java.util.HashMap())
        self._context.requestTotalExecutors(count, 0, no_preference)

    def _let_go(self, executor_id: str) -> None:
        if not self._drains:
            self._context.killExecutor(executor_id)
            return
        nobody = self._jvm.scala.Option.apply(None)
        why = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("scaled down", nobody)
        self._context.schedulerBackend().decommissionExecutor(executor_id, why, True, False)
        self._leaving.add(executor_id)


def refuse_what_cannot_scale(spark: SparkSession) -> None:
    """Two controllers of one thing fight; a local master has no executors."""
    if spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        raise BadInputError(
            "spark.dynamicAllocation.enabled is true: two controllers would fight over the executors; "
            "set it to false to attach"
        )
    master = str(spark.sparkContext.master)
    if master.startswith("local"):
        raise BadInputError(
            f"master is {master!r}, which has no executors to add; attach works on standalone (spark://...), "
            "YARN and Kubernetes masters"
        )


def total_cores(executors: Sequence[ExecutorInfo]) -> int:
    return sum(executor.cores for executor in executors)
