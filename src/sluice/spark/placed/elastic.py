"""Executors as a placement needs them: requested for workers it counts on, released where it leaves one empty."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluice.model import Placement
from sluice.spark.internals import executor_calls
from sluice.spark.placed.workers import EXPECTED, Executor, Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUEST_AGAIN_S = 5.0
EMPTY_S = 5.0
"""An executor is released after it was empty for so long: batches that began on it are over, its state is elsewhere."""


class ElasticExecutors:
    """Called every second. Spark's scheduler has the last word on whether an executor is idle."""

    def __init__(self, spark: SparkSession, now_s: Callable[[], float] = time.monotonic) -> None:
        self._spark = spark
        self._now_s = now_s
        self._requested: int | None = None
        self._requested_s = 0.0
        self._empty_since_s: dict[str, float] = {}
        self.released: set[str] = set()
        """Executors that are about to end: for a while Spark still lists them."""

    def reconcile(self, wanted: Placement, workers: Workers) -> tuple[str, ...]:
        """Bring the executors closer to what the placement needs; a sentence for everything done."""
        count, now_s = len(used(wanted)), self._now_s()
        said: list[str] = []
        is_new = count != self._requested
        if is_new or (len(workers) < count and now_s - self._requested_s > REQUEST_AGAIN_S):
            executor_calls.request_executors(self._spark, count)
            self._requested_s = now_s
            if is_new and len(workers) < count:
                said.append(f"requested {count} executors, {len(workers)} are there")
            self._requested = count
        surplus = empty(wanted, workers) if len(workers) > count else {}
        self._empty_since_s = {name: self._empty_since_s.get(name, now_s) for name in surplus}
        due = {name: one for name, one in surplus.items() if now_s - self._empty_since_s[name] >= EMPTY_S}
        if due:
            names = {one.executor_id: name for name, one in due.items()}
            released = executor_calls.kill_idle_executors(self._spark, list(names))
            self.released.update(released)
            if released:
                said.append(f"released the executors of {', '.join(names[one] for one in released)}: no instance there")
        return tuple(said)


def used(placement: Placement) -> set[str]:
    return {worker for worker, tasks in placement.tasks.items() if any(tasks.values())}


def empty(placement: Placement, workers: Workers) -> dict[str, Executor]:
    """Workers without an instance, but no more than are left when those yet to come are there."""
    spare = len(workers) - len(used(placement))
    unused = [name for name in workers if name not in used(placement)]
    return {name: workers[name] for name in unused[: max(0, spare)]}


def without_slots(placement: Placement, missing: int) -> dict[str, int]:
    """Operator -> instances that wait for a worker yet to come, `missing` in all at most."""
    found: dict[str, int] = {}
    for worker, tasks in placement.tasks.items():
        if worker.startswith(EXPECTED):
            for operator, count in tasks.items():
                waiting = min(count, missing - sum(found.values()))
                if waiting > 0:
                    found[operator] = found.get(operator, 0) + waiting
    return found
