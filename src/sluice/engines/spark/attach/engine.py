"""Somebody's running application as an engine: observed through a listener, scaled by its executors.

It starts and stops nothing: `start` and `stop` only begin and end the watching.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluice.control.engine import RecordCount
from sluice.engines.spark.attach.application import (
    QueryWindow,
    application_graph,
    executors_needed,
    observe_application,
    read_batch,
    read_lag,
)
from sluice.engines.spark.attach.executors import Executors, total_cores
from sluice.engines.spark.metrics import Batch, Stage, read_stages
from sluice.engines.spark.probe import ProgressListener, StageProbe
from sluice.model import Applied, Graph, Observation, Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SAMPLE_S = 0.5
"""How often the number of cores is looked at while waiting: it changes between two decisions."""


class InterruptibleClock:
    """Real time since the start; sleeping ends early when the watching does."""

    def __init__(self, ended: threading.Event, while_waiting: Callable[[float], None]) -> None:
        self._ended = ended
        self._while_waiting = while_waiting
        self._origin_s = time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() - self._origin_s

    def sleep_s(self, duration_s: float) -> None:
        until_s = self.now_s() + duration_s
        while (left_s := until_s - self.now_s()) > 0 and not self._ended.is_set():
            step_s = min(SAMPLE_S, left_s)
            self._ended.wait(step_s)
            self._while_waiting(step_s)


class AttachedEngine:
    """Every running query of a session; the plan's parallelism means executors of the whole application."""

    def __init__(self, spark: SparkSession, executors: Executors, min_executors: int, ended: threading.Event) -> None:
        self._spark = spark
        self._executors = executors
        self._min_executors = min_executors
        self._lock = threading.Lock()
        self._batches: dict[str, list[Batch]] = defaultdict(list)
        self._lag: dict[str, int | None] = {}
        self._lag_before: dict[str, int | None] = {}
        self._records: dict[str, int] = defaultdict(int)
        self._useful: dict[str, int] = {}
        self._work: dict[str, float] = {}
        self._core_seconds = 0.0
        self._observed_s = 0.0
        self._wanted: int | None = None
        self._graph = application_graph((), min_executors, {})
        self.clock = InterruptibleClock(ended, self._sample_cores)
        self._listener: ProgressListener | None = None
        self._probe = StageProbe(spark)

    @property
    def graph(self) -> Graph:
        return self._graph

    def start(self, plan: Plan) -> None:
        self._wanted = max(plan.parallelism.values())
        self._listener = ProgressListener(self._spark, self._on_progress)

    def observe(self) -> Observation:
        queries = {_name(query): query for query in self._spark.streams.active}
        present = self._executors.present()
        with self._lock:
            batches = {name: self._batches.pop(str(query.runId), []) for name, query in queries.items()}
            lags = {name: self._lag.get(str(query.runId)) for name, query in queries.items()}
        windows = {}
        for name, query in queries.items():
            stages = self._new_stages(str(query.runId))
            if stages and present:
                cores_each = max(1, total_cores(present) // len(present))
                widest = max(stage.tasks for stage in stages)
                self._useful[name] = max(self._min_executors, -(-widest // cores_each))
            windows[name] = QueryWindow(
                batches=batches[name],
                stages=stages,
                lag_records=lags[name],
                lag_before_records=self._lag_before.get(name),
                trigger_s=None,
                running=bool(query.status["isTriggerActive"]) and not query.status["message"].startswith("Waiting"),
            )
            self._records[name] += sum(batch.total_records for batch in batches[name])
        self._work = {name: sum(stage.run_s for stage in window.stages) for name, window in windows.items()}
        now_s = self.clock.now_s()
        seen = observe_application(
            windows, present, core_seconds=self._core_seconds, time_s=now_s, interval_s=now_s - self._observed_s
        )
        self._core_seconds = 0.0
        self._observed_s = now_s
        self._lag_before = lags
        self._graph = application_graph(tuple(windows), self._min_executors, self._useful)
        return seen

    def apply(self, plan: Plan) -> Applied:
        count = executors_needed(plan.parallelism, {**dict.fromkeys(plan.parallelism, 0.0), **self._work})
        before = len(self._executors.present())
        detail = self._executors.scale_to(count)
        self._wanted = count
        changed = dict.fromkeys(plan.parallelism, (before, count)) if count != before else {}
        return Applied(changed=changed, detail=detail)

    def stop(self) -> RecordCount:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        processed = sum(self._records.values())
        waiting = sum(lag for lag in self._lag.values() if lag)
        return RecordCount(arrived=processed + waiting, processed=processed, waiting=waiting, lost=0, duplicated=0)

    def _on_progress(self, progress: dict[str, Any]) -> None:
        with self._lock:
            self._batches[progress["runId"]].append(read_batch(progress))
            self._lag[progress["runId"]] = read_lag(progress)

    def _new_stages(self, run_id: str) -> list[Stage]:
        return [stage for job, stages in self._probe.new_jobs(run_id) for stage in read_stages(job, stages)]

    def _sample_cores(self, elapsed_s: float) -> None:
        self._core_seconds += total_cores(self._executors.present()) * elapsed_s


def _name(query: StreamingQuery) -> str:
    return query.name or f"query-{str(query.id)[:8]}"
