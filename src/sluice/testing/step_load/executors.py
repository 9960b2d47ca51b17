"""Executors of an application as Spark itself and the operating system report them, independently of `attach`."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS_OF_A_STAGE = 1000


def active_executors(spark: SparkSession) -> list[Any]:
    """Spark's own summaries of those that have joined and not left; a process that is still starting is none.

    Its status store may list one that is lost for minutes: the scheduler knows better.
    """
    context = spark.sparkContext._jsc.sc()
    known = str(context.schedulerBackend().getExecutorIds().mkString(",")).split(",")
    return [one for one in _elements(context.statusStore().executorList(True)) if one.id() in known]


def failed_tasks(spark: SparkSession) -> list[tuple[str, str]]:
    """(executor, why) of every task that failed, as far as Spark retains stages: an executor taken is among them."""
    store = spark.sparkContext._jsc.sc().statusStore()
    defaults = [getattr(store, f"stageList$default${number}")() for number in (2, 3, 4, 5)]
    found = []
    for stage in _elements(store.stageList(None, *defaults)):
        if stage.numFailedTasks():
            for task in _elements(store.taskList(stage.stageId(), stage.attemptId(), TASKS_OF_A_STAGE)):
                if task.status() == "FAILED":
                    found.append((str(task.executorId()), str(task.errorMessage().getOrElse(None))))
    return found


def _elements(found: Any) -> list[Any]:
    return [found.apply(position) for position in range(found.length())]


@dataclass
class ExecutorWatch:
    """Executors over time, sampled from outside of `attach`."""

    spark: Any
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    """(Unix time, executors, those that have finished a task)"""
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> ExecutorWatch:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def executors(self) -> int:
        return self.samples[-1][1] if self.samples else 0

    def has_working(self, count: int, since_s: float = 0.0) -> bool:
        """Whether so many executors are there and have finished a task, as seen later than `since_s`."""
        at_s, _, working = self.samples[-1] if self.samples else (0.0, 0, 0)
        return at_s > since_s and working == count

    def executor_seconds(self, began_s: float, ended_s: float) -> float:
        inside = [(at_s, count) for at_s, count, _ in self.samples if began_s <= at_s <= ended_s]
        pairs = itertools.pairwise(inside)
        return sum((later_s - at_s) * count for (at_s, count), (later_s, _) in pairs)

    def changes(self, began_s: float, ended_s: float) -> list[tuple[float, int]]:
        found: list[tuple[float, int]] = []
        for at_s, count, _ in self.samples:
            if at_s <= ended_s and (not found or found[-1][1] != count):
                found.append((round(at_s - began_s, 1), count))
        return found

    def _run(self) -> None:
        while not self._ended.wait(0.25):
            here = active_executors(self.spark)
            self.samples.append((time.time(), len(here), sum(one.completedTasks() > 0 for one in here)))


def executor_processes(application_id: str) -> dict[str, int]:
    """Executor id -> process, of those that run on this machine."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().decode().split("\0")
                # every cluster manager's has a name of its own that ends the same
                is_executor = any(word.endswith("ExecutorBackend") for word in command)
                if is_executor and application_id in command:
                    found[command[command.index("--executor-id") + 1]] = int(entry.name)
    return found
