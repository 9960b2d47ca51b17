"""Real-time mode as an engine of the control loop: its operators are the stages of one query, all running at once.

The stage that reads has one task per partition of the topic, and the one that keeps state one per state partition:
nothing changes that. The stage between them, which does the work, is rescaled by a restart: the query ends where its
batch ends, and the next one goes on from there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.control.engine import Ability, RecordCount
from sluice.errors import BadInputError, SluiceError
from sluice.model import Graph, Observation, OperatorChange, Reconciliation, Target
from sluice.spark.class_archive import queries_started
from sluice.spark.clock import WallClock
from sluice.spark.internals.queries import ProgressListener
from sluice.spark.kafka import connector
from sluice.spark.kafka.log import KafkaPosition
from sluice.spark.kafka.store import KafkaTopics
from sluice.spark.observe.events import BatchStage, read_batch
from sluice.spark.observe.probe import StageProbe
from sluice.spark.pipeline.compile import compile_pipeline
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.failure import Failure, OperatorFailedError
from sluice.spark.pipeline.feed import Feed
from sluice.spark.pipeline.folders import Folders, QueryState, SavedState
from sluice.spark.real_time.metrics import RealTimeBatch, StageWindow, in_order, stage_metrics
from sluice.spark.real_time.plan import READ, STATE, plan_real_time
from sluice.spark.real_time.query import RealTimeQuery
from sluice.spark.real_time.stages import check_target, stage_graph
from sluice.spark.session import SessionHandle, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluice.spark.observe.events import Batch

TICK_S = 1.0
LEAST_BATCH_S = 5.0
"""Spark's own limit."""
NOTHING = RecordCount(arrived=0, processed=0, waiting=0, lost=0, duplicated=0, downtime_s=0.0)
GUARANTEE = (
    "at least once: what a batch had written when it failed is written again; a rescale or a stop repeats nothing"
)


class RealTimeEngine:
    """`slots` is what Spark may run at once: the tasks of all stages together. `batch_s` says how often it commits.

    A session that is passed in must have Spark's Kafka connector.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        root: Path,
        *,
        slots: int,
        store: KafkaTopics,
        batch_s: float = 10.0,
        feed: Feed | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        if batch_s < LEAST_BATCH_S:
            raise BadInputError(f"a batch of real-time mode lasts at least {LEAST_BATCH_S:g} s, got {batch_s:g}")
        pipeline.validate()
        self._name = pipeline.name
        self.slots = slots
        self._store = store
        self._batch_s = batch_s
        self._feed = feed
        self._folders = Folders(root)
        if spark is None:
            jars = connector.session_settings(avro=bool(pipeline.avro_schemas()))
            self._session = open_session(f"sluice {pipeline.name}", threads=slots, settings=jars)
        else:
            self._session = SessionHandle(spark, owned=False)
        self.spark = self._session.spark
        try:
            self._plan = plan_real_time(pipeline, compile_pipeline(pipeline, self.spark))
            self._source = store.create(self._plan.source, self._plan.source_schema)
            self._sink = store.create(self._plan.sink, self._plan.queries[-1].schema)
            self._readers = self._source.partitions
            least = sum(operator.min_parallelism for operator in self.graph.operators)
            if least > slots:
                tasks = ", ".join(f"{operator.name} {operator.min_parallelism}" for operator in self.graph.operators)
                raise BadInputError(
                    f"all stages run at once and need at least {least} slots ({tasks}), there are {slots}"
                )
        except BaseException:
            self._session.close()
            raise
        self.guarantees = {self._plan.sink: GUARANTEE}
        self.clock = WallClock()
        self._lock = threading.Lock()
        self._ended: list[tuple[Batch, int]] = []
        """Batches whose stages are not known yet, each with the lag behind it."""
        self._stages: dict[tuple[str, int], list[BatchStage]] = {}
        self._read_records = 0
        self._observed_s = 0.0
        self._downtime_s = 0.0
        self._end_offset = 0
        self._lag: int | None = None
        self._listener: ProgressListener | None = None
        self._count: RecordCount | None = None
        self._restart_due_s: float | None = None

    @property
    def graph(self) -> Graph:
        return stage_graph(self._plan, self._source.name, self._readers)

    @property
    def tick_s(self) -> float:
        return TICK_S

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset()

    def start(self, target: Target) -> Target:
        check_target(target, self.graph, self.slots)
        parallelism = target.parallelism[self._plan.name]
        saved = self._folders.load()
        if saved is not None:
            if saved.pipeline != self._name or set(saved.queries) != {self._plan.name}:
                raise BadInputError(
                    f"{str(self._folders.root)!r} holds pipeline {saved.pipeline!r} with operators of its own "
                    f"({', '.join(sorted(saved.queries))}), not {self._name!r} in real-time mode; use another folder"
                )
            parallelism = saved.queries[self._plan.name].parallelism
        self._probe = StageProbe(self.spark)
        self._first = self._source.register(self._plan.name)
        self._end_offset = self._source.end_offset()
        self._query = RealTimeQuery(
            self._plan,
            self.spark,
            self._folders,
            source=self._source,
            sink=self._sink,
            batch_s=self._batch_s,
            state=QueryState(parallelism=parallelism, state_partitions=self._plan.state_partitions or 1),
        )
        self._save()
        self._listener = ProgressListener(self.spark, self._on_progress)
        self._query.start()
        if (failure := self._query.failure()) is not None:
            raise BadInputError(f"pipeline {self._name!r} cannot run in real-time mode: {failure.cause}")
        queries_started.set()
        self.clock.restart()
        if self._feed:
            self._feed.start({self._plan.source: self._source.locator})
        return Target(parallelism=self._parallelism)

    @property
    def _parallelism(self) -> dict[str, int]:
        fixed = {} if self._plan.state_partitions is None else {STATE: self._plan.state_partitions}
        return {READ: self._readers, self._plan.name: self._query.state.parallelism, **fixed}

    def observe(self) -> Observation:
        self.sample()
        now_s = self.clock.now_s()
        interval_s = max(1e-3, now_s - self._observed_s)
        self._observed_s = now_s
        batches = self._complete_batches()
        end = self._source.end_offset()
        arrival_rate, self._end_offset = (end - self._end_offset) / interval_s, end
        lag = batches[-1].lag_records if batches else self._lag
        lag_rate = None if lag is None or self._lag is None else (lag - self._lag) / interval_s
        self._lag = lag
        return Observation(
            time_s=now_s,
            interval_s=interval_s,
            operators={
                name: stage_metrics(
                    StageWindow(
                        position=position,
                        tasks=tasks,
                        batches=batches,
                        arrival_rate=None if position else arrival_rate,
                        lag_rate=None if position else lag_rate,
                    )
                )
                for position, (name, tasks) in enumerate(self._parallelism.items())
            },
            edges=self.graph.topology.edges,
            latency_samples_s=tuple(one.latency_s for one in batches),
        )

    def _complete_batches(self) -> list[RealTimeBatch]:
        """Those whose stages have reported; the rest waits for the next window."""
        with self._lock:
            complete = [(batch, lag) for batch, lag in self._ended if batch.key in self._stages]
            self._ended = [(batch, lag) for batch, lag in self._ended if batch.key not in self._stages]
            return [RealTimeBatch(batch, in_order(self._stages.pop(batch.key)), lag) for batch, lag in complete]

    def sample(self) -> None:
        found = [stage for run_id in self._query.run_ids for stage in self._probe.new_stages(run_id)]
        with self._lock:
            for stage in found:
                self._stages.setdefault(stage.key, []).append(stage)

    def maintain(self) -> tuple[str, ...]:
        """Start a failed query again, look at the feed, take samples."""
        self.sample()
        if self._feed:
            self._feed.check()
        if (failure := self._query.failure()) is None:
            self._restart_due_s = None
            return ()
        return self._restart(failure)

    def _restart(self, failure: Failure) -> tuple[str, ...]:
        query = self._query
        pause_s = failure.pause_s(query.restarts_in_a_row)
        if pause_s is None:
            raise OperatorFailedError(self._plan.name, failure, query.restarts_in_a_row)
        self._restart_due_s = self._restart_due_s or time.monotonic() + pause_s
        if time.monotonic() < self._restart_due_s:
            return ()
        self._restart_due_s = None
        query.restarts_in_a_row += 1
        try:
            query.start()
        except Exception as error:
            query.fail(error)
        return (f"the query failed and was started again ({query.restarts_in_a_row} in a row): {failure.cause}",)

    def reconcile(self, target: Target) -> Reconciliation:
        before = self._parallelism
        if target.parallelism == before:
            return Reconciliation(requested=before, observed=before)
        try:
            check_target(target, self.graph, self.slots)
        except SluiceError as error:
            return self._changed(before, target, str(error))
        ended_s = time.monotonic()
        problem, boundary_s = None, 0.0
        try:
            boundary_s = self._query.stop_at_boundary()
            ended_s = time.monotonic()
            self._query.set_parallelism(target.parallelism[self._plan.name])
            self._save()
            self._query.start()
        except Exception as error:
            problem = self._roll_back(before[self._plan.name], error)
        standstill_s = time.monotonic() - ended_s
        self._downtime_s += standstill_s
        detail = f"batch boundary {boundary_s:.2f} s (still answering), restart {standstill_s:.2f} s"
        return self._changed(before, target, problem, downtime_s=standstill_s, detail=None if problem else detail)

    def _roll_back(self, parallelism: int, error: Exception) -> str:
        cause = Failure.of(error).cause
        try:
            if self._query.state.parallelism != parallelism:
                self._query.set_parallelism(parallelism)
            self._save()
            self._query.start()
        except Exception as worse:
            self._query.fail(worse)
            return f"{cause}; and going back failed: {Failure.of(worse).cause}"
        return cause

    def _changed(
        self,
        before: Mapping[str, int],
        target: Target,
        error: str | None,
        *,
        downtime_s: float = 0.0,
        detail: str | None = None,
    ) -> Reconciliation:
        now = self._parallelism
        differ = {name: count for name, count in target.parallelism.items() if before.get(name, 0) != count}
        return Reconciliation(
            requested=now,
            observed=now,
            changes={
                name: OperatorChange(before=before.get(name, 0), requested=count, error=error)
                for name, count in differ.items()
            },
            downtime_s=downtime_s,
            detail=detail,
        )

    def stop(self) -> RecordCount:
        if self._count is None:
            try:
                if self._feed:
                    self._feed.stop()
                if self._listener:
                    self._query.stop_at_boundary()
            finally:
                try:
                    self._count = self._counted() if self._listener else NOTHING
                finally:
                    self._store.close()
                    if self._listener:
                        self._listener.close()
                    self._session.close()
        return self._count

    def _on_progress(self, progress: Mapping[str, Any]) -> None:
        """Called in Spark's listener thread, when a batch is committed."""
        batch = read_batch(progress)
        if batch is None or batch.run_id not in self._query.run_ids:
            return
        self._query.restarts_in_a_row = 0
        position = end_position(progress, self._source.name)
        if position:
            self._source.acknowledge(self._plan.name, position)
        lag = self._source.lag_records(self._plan.name)
        with self._lock:
            self._read_records += batch.records
            self._ended.append((batch, lag))

    def _await_last_progress(self) -> None:
        """Progress events come a moment after their batch; without the last one its records would look unread."""
        self._source.acknowledge(self._plan.name, self._query.committed_position() or self._first)
        passed = self._passed_records()
        deadline_s = time.monotonic() + 5.0
        while self._read_records < passed and time.monotonic() < deadline_s:
            time.sleep(0.05)

    def _passed_records(self) -> int:
        return self._source.records_between(self._first, self._source.position(self._plan.name))

    def _counted(self) -> RecordCount:
        """Of the records that were read; what a failed batch wrote is in the output twice and not counted here."""
        self._await_last_progress()
        passed = self._passed_records()
        waiting = self._source.records_between(self._source.position(self._plan.name), self._source.end_position())
        return RecordCount(
            arrived=passed + waiting,
            processed=passed,
            waiting=waiting,
            lost=max(0, passed - self._read_records),
            duplicated=max(0, self._read_records - passed),
            downtime_s=self._downtime_s,
        )

    def _save(self) -> None:
        self._folders.save(SavedState(pipeline=self._name, queries={self._plan.name: self._query.state}))


def end_position(progress: Mapping[str, Any], topic: str) -> KafkaPosition:
    """Where the batch ended, as Spark's connector tells; empty if it does not."""
    for source in progress.get("sources", []):
        offsets = source.get("endOffset")
        if isinstance(offsets, dict) and isinstance(offsets.get(topic), dict):
            return {str(partition): int(offset) for partition, offset in offsets[topic].items()}
    return {}
