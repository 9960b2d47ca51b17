"""Somebody's running application as an engine: observed through a listener, scaled by its executors.

It starts and stops nothing: `start` and `stop` only begin and end the watching.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sluice.control.engine import Ability, RecordCount
from sluice.model import Graph, Observation, OperatorChange, OperatorMetrics, Reconciliation, Target
from sluice.spark.attach.application import (
    ExecutorInfo,
    application_graph,
    observe_application,
    useful_executors,
)
from sluice.spark.attach.executors import Executors, total_cores
from sluice.spark.attach.failures import report_failure
from sluice.spark.attach.observer import QueryObserver, QueryStatus
from sluice.spark.clock import WallClock
from sluice.spark.internals import ProgressListener, trigger_interval_s
from sluice.spark.observe.events import Batch, read_batch
from sluice.spark.observe.probe import StageProbe
from sluice.spark.observe.window import QueryWindow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SAMPLES_KEPT = 3600
TICK_S = 1.0
FORGET_S = 3600.0
"""Batches nobody asked for in this time are those of a query that has ended."""


class AttachedEngine:
    """Every running query of a session; a target's parallelism means executors of the whole application."""

    def __init__(self, spark: SparkSession, executors: Executors, min_executors: int, ended: threading.Event) -> None:
        self._spark = spark
        self._executors = executors
        self._min_executors = min_executors
        self._lock = threading.Lock()
        self._batches: dict[str, list[Batch]] = defaultdict(list)
        self._observers: dict[str, QueryObserver] = {}
        self._useful: dict[str, int] = {}
        self._cores: list[tuple[float, int]] = []
        self._processed = 0
        self._waiting = 0
        self._observed_s = 0.0
        self._seen_executors = 1
        self._ended = ended
        self._graph = application_graph((), min_executors, {})
        self.clock = WallClock(ended)
        self._present: list[ExecutorInfo] = []
        self._requested: int | None = None
        self._listener: ProgressListener | None = None
        self._probe = StageProbe(spark)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def tick_s(self) -> float:
        return TICK_S

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset()

    def start(self, target: Target) -> Target:
        self._listener = ProgressListener(self._spark, self._on_progress)
        self.maintain()
        return target

    def observe(self) -> Observation:
        """What cannot be seen now is unknown, and nobody scales on it."""
        try:
            return self._observe()
        except Exception as error:
            self._note(error)
            now_s = self.clock.now_s()
            unseen = {name: OperatorMetrics(parallelism=self._seen_executors) for name in self._graph.names}
            return Observation(time_s=now_s, interval_s=max(1e-3, now_s - self._observed_s), operators=unseen)

    def _observe(self) -> Observation:
        present = self._present = self._executors.present()
        windows = {_name(query): self._window(query, present) for query in self._spark.streams.active}
        cores_each = total_cores(present) // len(present) if present else 1
        for name, window in windows.items():
            useful = useful_executors(window.span.stages, cores_each)
            if useful is not None:
                self._useful[name] = useful
        self._observers = {name: one for name, one in self._observers.items() if name in windows}
        self._waiting = sum(window.backlog.lag_records or 0 for window in windows.values())
        now_s = self.clock.now_s()
        seen = observe_application(windows, present, time_s=now_s, interval_s=max(1e-3, now_s - self._observed_s))
        self._observed_s = now_s
        self._seen_executors = max(1, len(present))
        self._graph = application_graph(tuple(windows), self._min_executors, self._useful)
        return seen

    def maintain(self) -> tuple[str, ...]:
        """See which executors are there: how many cores a window had is summed up from these samples."""
        try:
            self._present = self._executors.present()
        except Exception as error:  # the next look may see again
            self._note(error)
        else:
            self._cores = [*self._cores[-SAMPLES_KEPT:], (time.time(), total_cores(self._present))]
        return ()

    def reconcile(self, target: Target) -> Reconciliation:
        count = max(target.parallelism.values())
        before = self._requested if self._requested is not None else len(self._present)
        detail: str | None = None
        try:
            detail = self._executors.reconcile(count, self._present)
        except Exception as error:  # the next tick tries again
            self._note(error)
        self._requested = count
        return Reconciliation(
            requested=dict.fromkeys(target.parallelism, count),
            observed=dict.fromkeys(target.parallelism, len(self._present)),
            changes={name: OperatorChange(before=before, requested=count) for name in target.parallelism}
            if count != before
            else {},
            detail=detail,
        )

    def stop(self) -> RecordCount:
        if self._listener is not None:
            with contextlib.suppress(Exception):  # of an application that has ended
                self._listener.close()
            self._listener = None
        arrived = self._processed + self._waiting
        # the job's own source and sink are out of sight: what is lost or repeated there only its owner can count
        return RecordCount(
            arrived=arrived, processed=self._processed, waiting=self._waiting, lost=None, duplicated=None
        )

    def _window(self, query: StreamingQuery, executors: list[ExecutorInfo]) -> QueryWindow:
        name, run_id = _name(query), str(query.runId)
        if name not in self._observers or self._observers[name].run_id != run_id:
            self._observers[name] = QueryObserver(run_id, trigger_interval_s(query), time.time())
        status = query.status
        in_batch = bool(status["isTriggerActive"]) and not status["message"].startswith("Waiting")
        stages = self._probe.new_stages(run_id)
        running_tasks = self._probe.running_tasks(run_id) if in_batch else None
        # all of Spark's answers are in: what follows cannot fail half way
        with self._lock:
            self._observers[name].add(self._batches.pop(run_id, []), stages)
        now = QueryStatus(now_s=time.time(), in_batch=in_batch, running_tasks=running_tasks)
        return self._observers[name].close_window(now, executors, self._cores)

    def _on_progress(self, progress: dict[str, Any]) -> None:
        batch = read_batch(progress)
        if batch is None:
            return
        with self._lock:
            self._processed += batch.records
            self._batches[batch.run_id].append(batch)
            ended = [run for run, seen in self._batches.items() if batch.ended_s - seen[-1].ended_s > FORGET_S]
            for run in ended:
                del self._batches[run]

    def _note(self, error: Exception) -> None:
        """A driver that does not answer ends nothing; a stopped application ends the watching."""
        if report_failure(self._spark, error):
            self._ended.set()


def _name(query: StreamingQuery) -> str:
    return query.name or f"query-{str(query.id)[:8]}"
