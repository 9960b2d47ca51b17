"""Somebody's running application as an engine: observed through a listener, scaled by its executors.

It starts and stops nothing: `start` and `stop` only begin and end the watching.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from sluice.control.engine import Ability, RecordCount
from sluice.model import Graph, Observation, OperatorChange, OperatorMetrics, Reconciliation, Target
from sluice.spark.attach.application import (
    ExecutorInfo,
    application_graph,
    distinct_names,
    observe_application,
    useful_executors,
)
from sluice.spark.attach.executors import Executors, total_cores
from sluice.spark.attach.failures import report_failure
from sluice.spark.attach.observer import QueryObserver, QueryStatus, has_data, is_in_batch
from sluice.spark.attach.other_jobs import OtherJobs, OtherWork
from sluice.spark.clock import WallClock
from sluice.spark.internals.queries import ApplicationQueries, RunningQuery
from sluice.spark.observe.events import Batch, read_batch
from sluice.spark.observe.probe import StageProbe
from sluice.spark.observe.window import QueryWindow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICK_S = 1.0
SAMPLES_KEPT = 1000
"""Of other jobs in one window."""
CHANGES_KEPT = 1000
"""Changes of the number of cores; a window needs those since its query's last batch."""
BATCHES_KEPT = 1000
"""Of one run between two observations: more than that come only while nothing can be observed."""
FORGET_S = 3600.0
"""Batches that no observation took in this time belong to a query that has ended."""


class AttachedEngine:
    """Every running query of an application; a target's parallelism means executors of the whole application."""

    def __init__(
        self,
        spark: SparkSession,
        executors: Executors,
        queries: ApplicationQueries,
        bounds: tuple[int, int],
        ended: threading.Event,
    ) -> None:
        self._spark = spark
        self._executors = executors
        self._queries = queries
        self._min_executors, self._max_executors = bounds
        self._lock = threading.Lock()
        self._batches: dict[str, deque[Batch]] = {}
        self._observers: dict[str, QueryObserver] = {}
        self._names: dict[str, str] = {}
        self._useful: dict[str, int] = {}
        self._cores: list[tuple[float, int]] = []
        self._others: deque[OtherWork] = deque(maxlen=SAMPLES_KEPT)
        self._in_batch_with_data = False
        self._processed = 0
        self._waiting = 0
        self._observed_s = 0.0
        self._seen_executors = 1
        self._ended = ended
        self._graph = application_graph((), self._min_executors, {})
        self.clock = WallClock(ended)
        self._present: list[ExecutorInfo] = []
        self._requested: int | None = None
        self._probe = StageProbe(spark)
        self._other_jobs = OtherJobs(self._probe.store)

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
        self._queries.listen(self._on_progress)
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
        running = self._queries.running()
        self._in_batch_with_data = False
        self._names = distinct_names({query.query_id: query.name for query in running}, self._names)
        windows = {self._names[query.query_id]: self._window(query, present) for query in running}
        self._forget({query.run_id for query in running})
        self._sample_others(present)
        cores_each = total_cores(present) // len(present) if present else 1
        for name, window in windows.items():
            useful = useful_executors(window.span.stages, cores_each)
            if useful is not None:
                self._useful[name] = useful
        self._useful = {name: count for name, count in self._useful.items() if name in windows}
        self._waiting = sum(window.backlog.lag_records or 0 for window in windows.values())
        now_s = self.clock.now_s()
        others = OtherWork.over(self._others)
        seen = observe_application(
            windows,
            present,
            time_s=now_s,
            interval_s=max(1e-3, now_s - self._observed_s),
            at_work=self._in_batch_with_data or others.all_jobs > 0,
            other_tasks=others.tasks if others.jobs else None,
        )
        self._observed_s = now_s
        self._seen_executors = max(1, len(present))
        # what others use is not released under them
        least = max(self._min_executors, min(others.executors, self._max_executors))
        self._graph = application_graph(tuple(windows), least, self._useful)
        self._others = deque([self._others[-1]], SAMPLES_KEPT)
        return seen

    def maintain(self) -> tuple[str, ...]:
        """See which executors are there and who else uses them: windows are summed up from these samples."""
        try:
            self._present = self._executors.present()
            self._queries.refresh()
            self._sample_others(self._present)
        except Exception as error:  # the next look may see again
            self._note(error)
        else:
            self._note_cores(total_cores(self._present))
        return ()

    def reconcile(self, target: Target) -> Reconciliation:
        count = max(target.parallelism.values())
        before = self._requested if self._requested is not None else len(self._present)
        detail: str | None = None
        try:
            detail = self._executors.reconcile(count, self._present, others_work=self._others_work())
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
        with contextlib.suppress(Exception):  # of an application that has ended
            self._queries.close()
        arrived = self._processed + self._waiting
        # the job's own source and sink are out of sight: what is lost or repeated there only its owner can count
        return RecordCount(
            arrived=arrived, processed=self._processed, waiting=self._waiting, lost=None, duplicated=None
        )

    def _window(self, query: RunningQuery, executors: list[ExecutorInfo]) -> QueryWindow:
        run_id = query.run_id
        if run_id not in self._observers:
            self._observers[run_id] = QueryObserver(run_id, query.trigger_interval_s(), time.time())
        found = query.status()
        in_batch = is_in_batch(found)
        self._in_batch_with_data |= has_data(found)
        stages = self._probe.new_stages(run_id)
        running_tasks = self._probe.running_tasks(run_id) if in_batch else None
        # all of Spark's answers are in: what follows cannot fail half way
        with self._lock:
            self._observers[run_id].add(list(self._batches.pop(run_id, ())), stages)
        now = QueryStatus(now_s=time.time(), in_batch=in_batch, running_tasks=running_tasks)
        return self._observers[run_id].close_window(now, executors, self._cores)

    def _on_progress(self, progress: dict[str, Any]) -> None:
        batch = read_batch(progress)
        if batch is None:
            return
        with self._lock:
            self._processed += batch.records
            self._batches.setdefault(batch.run_id, deque(maxlen=BATCHES_KEPT)).append(batch)
            ended = [run for run, seen in self._batches.items() if batch.ended_s - seen[-1].ended_s > FORGET_S]
            for run in ended:
                del self._batches[run]

    def _forget(self, run_ids: set[str]) -> None:
        """Drop what is kept of runs that have ended."""
        self._observers = {run_id: one for run_id, one in self._observers.items() if run_id in run_ids}
        self._probe.forget_all_but(run_ids)

    def _sample_others(self, here: list[ExecutorInfo]) -> None:
        self._others.append(self._other_jobs.sample(self._queries.run_ids, here))

    def _others_work(self) -> bool:
        return bool(self._others) and self._others[-1].jobs > 0

    def _note_cores(self, cores: int) -> None:
        if not self._cores or self._cores[-1][1] != cores:
            self._cores = [*self._cores[-CHANGES_KEPT:], (time.time(), cores)]

    def _note(self, error: Exception) -> None:
        """A driver that does not answer ends nothing; a stopped application ends the watching."""
        if report_failure(self._spark, error):
            self._ended.set()
