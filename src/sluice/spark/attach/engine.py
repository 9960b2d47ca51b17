"""Somebody's running application as an engine: observed through a listener, scaled by its executors.

It starts and stops nothing: `start` and `stop` only begin and end the watching.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sluice.control.engine import Ability, RecordCount
from sluice.model import Graph, Observation, OperatorChange, OperatorMetrics, Reconciliation, Target
from sluice.spark.attach.application import (
    ExecutorInfo,
    QueryBatch,
    QueryWindow,
    application_graph,
    observe_application,
    read_batch,
    useful_executors,
)
from sluice.spark.attach.executors import Executors, one_line, total_cores
from sluice.spark.attach.log import line
from sluice.spark.clock import WallClock
from sluice.spark.metrics import Stage, instance_seconds, read_stages
from sluice.spark.probe import ProgressListener, StageProbe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("sluice")
SAMPLES_KEPT = 3600
TICK_S = 1.0
FORGET_S = 3600.0
"""Batches nobody asked for in this time are those of a query that has ended."""


class WatchedQuery:
    """What is known of one run of a query between two observations."""

    def __init__(self, query: StreamingQuery) -> None:
        self.run_id = str(query.runId)
        self.trigger_s = trigger_s(query)
        self._began_s = time.time()
        self._before: QueryBatch | None = None
        self._stages: list[Stage] = []

    def window(
        self, query: StreamingQuery, batches: list[QueryBatch], stages: list[Stage], cores: list[tuple[float, int]]
    ) -> QueryWindow:
        """The window since the last one that had a batch or was idle; a running batch belongs to the next."""
        now_s = time.time()
        status = query.status
        running = bool(status["isTriggerActive"]) and not status["message"].startswith("Waiting")
        was_cold = self._before is None
        if was_cold:
            batches = self._without_first(batches)
        ended_s = batches[-1].ended_s if running and batches else now_s
        self._stages += stages
        newest = batches[-1].batch_id if batches else -1
        oldest = self._before.batch_id if self._before else -1
        found = QueryWindow(
            began_s=self._began_s,
            ended_s=ended_s,
            now_s=now_s,
            batches=batches,
            before=self._before,
            stages=[stage for stage in self._stages if oldest < stage.batch_id <= newest],
            core_seconds=instance_seconds(cores, self._began_s, ended_s),
            trigger_s=self.trigger_s,
            running=running,
            is_cold=was_cold and not batches and (running or self._before is not None),
        )
        if batches or not (running or found.is_cold or found.waits_for_trigger):
            self._began_s = ended_s
            self._stages = [stage for stage in self._stages if stage.batch_id > newest]
        self._before = found.last
        return found

    def _without_first(self, batches: list[QueryBatch]) -> list[QueryBatch]:
        """Windows begin behind the first batch with records."""
        first = next((position for position, batch in enumerate(batches) if batch.total_records), None)
        if first is None:
            return []
        self._before = batches[first]
        self._began_s = self._before.ended_s
        return batches[first + 1 :]


class AttachedEngine:
    """Every running query of a session; a target's parallelism means executors of the whole application."""

    def __init__(self, spark: SparkSession, executors: Executors, min_executors: int, ended: threading.Event) -> None:
        self._spark = spark
        self._executors = executors
        self._min_executors = min_executors
        self._lock = threading.Lock()
        self._batches: dict[str, list[QueryBatch]] = defaultdict(list)
        self._watched: dict[str, WatchedQuery] = {}
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
        present = self._present
        windows = {_name(query): self._window(query) for query in self._spark.streams.active}
        cores_each = total_cores(present) // len(present) if present else 1
        for name, window in windows.items():
            useful = useful_executors(window.stages, cores_each)
            if useful is not None:
                self._useful[name] = useful
        self._watched = {name: watched for name, watched in self._watched.items() if name in windows}
        self._waiting = sum(window.last.lag_records or 0 for window in windows.values() if window.last)
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

    def _window(self, query: StreamingQuery) -> QueryWindow:
        name, run_id = _name(query), str(query.runId)
        if name not in self._watched or self._watched[name].run_id != run_id:
            self._watched[name] = WatchedQuery(query)
        with self._lock:
            batches = self._batches.pop(run_id, [])
        stages = [stage for job, found in self._probe.new_jobs(run_id) for stage in read_stages(job, found)]
        return self._watched[name].window(query, batches, stages, self._cores)

    def _on_progress(self, progress: dict[str, Any]) -> None:
        batch = read_batch(progress)
        with self._lock:
            self._processed += batch.total_records
            self._batches[batch.run_id].append(batch)
            ended = [run for run, seen in self._batches.items() if batch.ended_s - seen[-1].ended_s > FORGET_S]
            for run in ended:
                del self._batches[run]

    def _note(self, error: Exception) -> None:
        """A driver that does not answer ends nothing; a stopped application ends the watching."""
        if self._spark.sparkContext._jsc is None:
            self._ended.set()
        else:
            log.warning("%s", line({"event": "unanswered", "error": one_line(error)}))


def trigger_s(query: StreamingQuery) -> float | None:
    """The interval of a processing-time trigger; null for others, and for a query that does not tell."""
    from py4j.protocol import Py4JError

    java_query: Any = query._jsq
    try:
        interval_ms = java_query.streamingQuery().trigger().intervalMs()
    except Py4JError:
        return None
    return interval_ms / 1000 if interval_ms else None


def _name(query: StreamingQuery) -> str:
    return query.name or f"query-{str(query.id)[:8]}"
