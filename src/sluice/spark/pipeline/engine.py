"""Spark as an engine of the control loop: what `Runtime` does, in the loop's words and on the loop's clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.control.engine import Ability, RecordCount
from sluice.errors import BadInputError, SluiceError, unknown_name
from sluice.model import Graph, Observation, OperatorChange, Reconciliation, Target
from sluice.spark.clock import WallClock
from sluice.spark.internals import ProgressListener
from sluice.spark.observe.events import read_batch
from sluice.spark.observe.metrics import make_observation
from sluice.spark.observe.probe import StageProbe
from sluice.spark.pipeline.compile import compile_pipeline
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.feed import Feed
from sluice.spark.pipeline.ledger import Ledger
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.pipeline.runtime import Rescale, RescaleResult, Runtime
from sluice.spark.topic.interface import TopicStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST_PROGRESS_S = 5.0
TICK_S = 1.0


class SparkEngine:
    """Runs a `Pipeline`. `slots` bounds the sum of all parallelism; `threads` is what Spark may run at once.

    A session may be passed in (tests, an application of your own); otherwise one is started and stopped here. With a
    folder that holds an earlier run of the same pipeline, `start` goes on with that run's plan. `feed` fills the
    topics of its sources while it runs; without one they are filled from outside. `store` says where topics are: in
    folders below `root` unless told otherwise. `session_settings` are Spark's, for a session that is started here.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        root: Path,
        *,
        slots: int,
        spark: SparkSession | None = None,
        master: str | None = None,
        settings: QuerySettings | None = None,
        rescale: Rescale = "live",
        feed: Feed | None = None,
        store: TopicStore | None = None,
        session_settings: Mapping[str, str] | None = None,
    ) -> None:
        from sluice.spark.session import SessionHandle, open_session

        pipeline.validate()
        if slots < 1:
            raise BadInputError(f"slots must be at least 1, got {slots}")
        self._sources = tuple(pipeline.sources)
        self.guarantees = {name: sink.guarantee for name, sink in pipeline.sink_specs.items()}
        """What a crash can do to the output of each sink, in one sentence."""
        self._feed = feed
        self.slots = slots
        self._settings = settings or QuerySettings()
        self._rescale: Rescale = rescale
        self._session = (
            SessionHandle(spark, owned=False)
            if spark is not None
            else open_session(
                f"sluice {pipeline.name}",
                threads=task_threads(pipeline, slots),
                master=master,
                settings=session_settings,
            )
        )
        self.spark = self._session.spark
        try:
            compiled = compile_pipeline(pipeline, self.spark)
        except BaseException:
            self._session.close()
            raise
        self.runtime = Runtime(pipeline, compiled, self.spark, root, self._settings, store)
        self._graph = compiled.graph
        self.clock = WallClock()
        self._lock = threading.Lock()
        self._ledgers: dict[str, Ledger] = {}
        self._latency_samples_s: list[float] = []
        self._observed_s = 0.0
        self._downtime_s = 0.0
        self._count: RecordCount | None = None
        self._listener: ProgressListener | None = None

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
        self._check(target)
        self._stages = StageProbe(self.spark)
        self.runtime.prepare(target.parallelism)
        self._ledgers = {
            name: Ledger(
                query=query,
                topics=self.runtime.topics,
                folders=self.runtime.folders,
                is_source=self._graph.topology.is_source(name),
                trigger_s=self._settings.trigger_s,
                bound_records=self._settings.topic_bound_records,
            )
            for name, query in self.runtime.queries.items()
        }
        self._listener = ProgressListener(self.spark, self._on_progress)
        self.runtime.start()
        self.clock.restart()
        if self._feed:
            self._feed.start({name: self.runtime.topics[name].locator for name in self._sources})
        return Target(parallelism=self.runtime.parallelism)

    def observe(self) -> Observation:
        self._sample()
        now_s, unix_s = self.clock.now_s(), time.time()
        interval_s = max(1e-3, now_s - self._observed_s)
        with self._lock:
            windows = {name: ledger.close_window(unix_s, interval_s) for name, ledger in self._ledgers.items()}
            samples_s, self._latency_samples_s = self._latency_samples_s, []
        self._observed_s = now_s
        return make_observation(
            windows,
            time_s=now_s,
            interval_s=interval_s,
            edges=self._graph.topology.edges,
            latency_samples_s=samples_s,
        )

    def reconcile(self, target: Target) -> Reconciliation:
        before = self.runtime.parallelism
        if target.parallelism == before:
            return Reconciliation(requested=before, observed=before)
        try:
            self._check(target)
        except SluiceError as error:
            return self._refused(target, str(error))
        results = self.runtime.rescale(target.parallelism, self._rescale)
        changed = [name for name, result in results.items() if result.after != result.before]
        standstill_s = max((result.standstill_s for result in results.values()), default=0.0)
        self._downtime_s += standstill_s
        with self._lock:
            for name in changed:
                self._ledgers[name].on_rescale()
        now = self.runtime.parallelism
        return Reconciliation(
            requested=now,
            observed=now,
            changes={
                name: OperatorChange(before=result.before, requested=target.parallelism[name], error=result.error)
                for name, result in results.items()
            },
            downtime_s=standstill_s,
            detail=_detail(results),
        )

    def _refused(self, target: Target, why: str) -> Reconciliation:
        now = self.runtime.parallelism
        wanted = {**dict.fromkeys(now, 0), **target.parallelism}
        differ = {name: count for name, count in wanted.items() if now.get(name, 0) != count}
        return Reconciliation(
            requested=now,
            observed=now,
            changes={
                name: OperatorChange(before=now.get(name, 0), requested=count, error=why)
                for name, count in differ.items()
            },
        )

    def stop(self) -> RecordCount:
        if self._count is None:
            try:
                if self._feed:
                    self._feed.stop()
                self.runtime.stop()
            finally:
                self._await_last_progress()
                self._count = self._counted()
                if self._listener:
                    self._listener.close()
                self._session.close()
        return self._count

    def maintain(self) -> tuple[str, ...]:
        """Start failed queries again, drop output nobody reads, look at the feed, take samples."""
        restarts = self.runtime.restart_failed()
        self.runtime.trim_output()
        if self._feed:
            self._feed.check()
        self._sample()
        return tuple(
            f"operator {one.operator!r} failed and was started again ({one.in_a_row} in a row): {one.cause}"
            for one in restarts
        )

    def _sample(self) -> None:
        latencies_s = self._latencies_s()
        with self._lock:
            self._latency_samples_s.append(max(latencies_s.values(), default=0.0))
            for ledger in self._ledgers.values():
                for run_id in ledger.query.run_ids:
                    ledger.on_stages(self._stages.new_stages(run_id))

    def _on_progress(self, progress: Mapping[str, Any]) -> None:
        """Called in Spark's listener thread."""
        query, batch = self.runtime.query_of_run(progress["runId"]), read_batch(progress)
        if query is None or batch is None:
            return
        query.on_progress(progress)
        if (written := query.written_records(batch.batch_id)) is not None:
            batch = replace(batch, output_records=written)
        with self._lock:
            self._ledgers[query.name].on_batch(batch)

    def _latencies_s(self) -> dict[str, float]:
        now_s = time.time()
        return {name: ledger.waiting_s(now_s) for name, ledger in self._ledgers.items() if ledger.is_source}

    def _await_last_progress(self) -> None:
        """Progress events come a moment after their batch; without the last ones its records would look lost."""
        deadline_s = time.monotonic() + LAST_PROGRESS_S
        passed = [(ledger, ledger.passed_records()) for ledger in self._ledgers.values()]
        while time.monotonic() < deadline_s and any(ledger.read_records < count for ledger, count in passed):
            time.sleep(0.05)

    def _counted(self) -> RecordCount:
        """Offsets say what should have been read; Spark's own row counts say what was."""
        arrived = processed = waiting = lost = duplicated = 0
        for ledger in self._ledgers.values():
            passed = ledger.passed_records()
            lost += max(0, passed - ledger.read_records)
            duplicated += max(0, ledger.read_records - passed)
            if ledger.is_source:
                left = ledger.waiting_records()
                arrived += passed + left
                processed += passed
                waiting += left
        return RecordCount(
            arrived=arrived,
            processed=processed,
            waiting=waiting,
            lost=lost,
            duplicated=duplicated,
            downtime_s=self._downtime_s,
        )

    def _check(self, target: Target) -> None:
        for name in target.parallelism:
            if name not in self._graph.names:
                raise unknown_name("operator", name, self._graph.names)
        if target.sizes or target.placement:
            raise BadInputError("pipelines on Spark have instances of one size on one machine: no sizes, no placement")
        for name in self._graph.names:
            if name not in target.parallelism:
                raise BadInputError(f"the target has no parallelism for operator {name!r}")
        if target.slots > self.slots:
            raise BadInputError(f"the target needs {target.slots} slots, there are {self.slots}")
        for operator in self._graph.operators:
            wanted = target.parallelism[operator.name]
            high = operator.max_parallelism
            if wanted < operator.min_parallelism or (high is not None and wanted > high):
                raise BadInputError(
                    f"operator {operator.name!r}: parallelism must be from {operator.min_parallelism} to "
                    f"{high if high is not None else self.slots}, got {wanted}"
                )


def task_threads(pipeline: Pipeline, slots: int) -> int:
    """Threads for the slots, and for the state partitions of whoever is in its second stage while paced slots wait."""
    return slots + max(operator.state_partitions for operator in pipeline.operators.values())


def _detail(results: Mapping[str, RescaleResult]) -> str | None:
    """Where the time went, by operator; one sentence where all changed in the same way."""
    details = {name: result.detail for name, result in results.items() if result.error is None}
    if len(set(details.values())) == 1:
        return next(iter(details.values()))
    return "; ".join(f"{name}: {detail}" for name, detail in details.items()) or None
