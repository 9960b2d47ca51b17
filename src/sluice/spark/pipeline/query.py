"""One operator as one streaming query: started, steered while it runs, stopped only between two batches.

The loop and Spark's listener thread both change how much an operator reads: one lock per operator covers its state, its
read limit and the files that carry them to the source.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluice.errors import BadInputError, SluiceError
from sluice.spark.internals.checkpoints import repartition_state
from sluice.spark.internals.topics import columns_used, last_progress, runs_python
from sluice.spark.observe.events import records_per_topic
from sluice.spark.pipeline.compile import Query
from sluice.spark.pipeline.failure import Failure
from sluice.spark.pipeline.folders import (
    NO_BATCHES,
    Folders,
    QueryState,
    at_batch_boundary,
    committed_offsets,
    last_batches,
)
from sluice.spark.pipeline.read_limit import ReadLimit
from sluice.spark.session import session_settings
from sluice.spark.topic import ReaderControl
from sluice.spark.topic.interface import BatchSink, RecordLog, StreamSink, TopicStore
from sluice.spark.topic.planner import before_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

POLL_S = 0.02
BOUNDARY_TRIES = 5

_copying_settings = threading.Lock()
"""A query copies the session's settings when it starts."""
_initialising = threading.Semaphore(os.cpu_count() or 1)
"""A source in Python has a process that Spark waits ten seconds for: all at once would make each other late."""


@dataclass(frozen=True, kw_only=True)
class QuerySettings:
    """What all queries of a runtime share."""

    trigger_s: float = 1.0
    batches_per_target: float = 2.0
    topic_bound_records: int | None = None
    boundary_timeout_s: float = 120.0
    keep_output: bool = True

    @property
    def target_batch_s(self) -> float:
        return self.trigger_s * self.batches_per_target


class OperatorQuery:
    """Live control is a file per input that the source reads before every batch; nothing here restarts for it."""

    def __init__(
        self,
        query: Query,
        spark: SparkSession,
        folders: Folders,
        settings: QuerySettings,
        state: QueryState,
        *,
        store: TopicStore,
        topics: Mapping[str, RecordLog],
        placed: bool = False,
    ) -> None:
        self.query = query
        self.name = query.name
        self._spark = spark
        self._folders = folders
        self._settings = settings
        self._placed = placed
        self._store = store
        self._topics = topics
        self._sink: BatchSink | None = None
        self._streaming: StreamingQuery | None = None
        self._start_failure: Failure | None = None
        self._lock = threading.RLock()
        """Around everything below."""
        self._state = state
        self._paused = False
        self.restarts_in_a_row = 0
        """Since a batch was finished."""
        self.run_ids: list[str] = []
        """The present run last; a restart begins a new one while Spark may still report on the one before."""
        self._input_shares = dict.fromkeys(query.inputs, 1 / len(query.inputs))
        self._weights: Sequence[float] | None = None
        self._columns: dict[str, list[str]] = {}
        """Those of each input that the query depends on, where that is known."""
        self._limit = ReadLimit.first(
            target_s=settings.target_batch_s,
            parallelism=state.parallelism,
            slot_rate=query.slot_rate_at(state.parallelism),
            known_records=self._earlier_limit(),
        )
        self._adapted: tuple[str, int] | None = None
        """Run and batch that the limit was last adapted to."""

    @property
    def state(self) -> QueryState:
        return self._state

    @property
    def checkpoint(self) -> str:
        return str(self._folders.checkpoint(self.name))

    @property
    def is_active(self) -> bool:
        return self._streaming is not None and bool(self._streaming.isActive)

    @property
    def in_batch(self) -> bool:
        """Whether a batch is running now; between batches it waits for its trigger or for records."""
        return self.is_active and bool(self._status["isTriggerActive"])

    @property
    def is_initialising(self) -> bool:
        """Before its first trigger. A query interrupted here leaves a Python process behind."""
        return self.is_active and str(self._status["message"]).startswith("Initializing")

    @property
    def _status(self) -> dict[str, Any]:
        if self._streaming is None:
            raise SluiceError(f"operator {self.name!r} is not running")
        return self._streaming.status

    def start(self, *, paused: bool = False) -> None:
        """Start or go on from the checkpoint."""
        self._start_failure = None
        self._set_paused(paused)
        with _initialising:
            self._start()

    def count_restart(self) -> int:
        """How many restarts that makes since a batch was finished."""
        with self._lock:
            self.restarts_in_a_row += 1
            return self.restarts_in_a_row

    def _start(self) -> None:
        frames = [
            self._store.stream(
                self._spark,
                topic,
                consumer=self.name,
                control=self._folders.control(self.name, topic),
                places=self._folders.places(self.name) if self._placed else None,
            )
            for topic in self.query.inputs
        ]
        built = self.query.build(frames)
        self._note_plan(columns_used(built, "control"), native=not runs_python(built))
        for topic in self.query.inputs:
            before_batch[self._folders.control(self.name, topic)] = self._adapt_in_time
        writer = (
            self._to_sink(built.writeStream)
            .outputMode(self.query.output_mode)
            .option("checkpointLocation", self.checkpoint)
            .trigger(processingTime=f"{round(self._settings.trigger_s * 1000)} milliseconds")
        )
        with _copying_settings:
            settings = {"spark.sql.shuffle.partitions": str(self.state.state_partitions)}
            with session_settings(self._spark, settings, pool=self.name):
                self._streaming = writer.start()
        with self._lock:
            self.run_ids = [*self.run_ids[-1:], str(self._streaming.runId)]
        while self.is_initialising:
            time.sleep(POLL_S)

    def _to_sink(self, writer: DataStreamWriter) -> DataStreamWriter:
        sink = self.query.sink
        if sink is not None and sink.format is not None:
            return writer.format(sink.format).options(**sink.options)
        self._sink = sink.write if sink is not None else self._store.sink(self.query.output, producer=self.name)
        assert self._sink is not None
        if isinstance(self._sink, StreamSink):
            return self._sink.write_from(writer, self._spark)
        return writer.foreachBatch(self._sink)

    def _note_plan(self, used: Mapping[str, frozenset[str]], *, native: bool) -> None:
        """What a query does not depend on need not be read."""
        controls = {topic: str(self._folders.control(self.name, topic)) for topic in self.query.inputs}
        with self._lock:
            self._columns = {topic: sorted(used[path]) for topic, path in controls.items() if path in used}
            if native:
                self._limit = self._limit.native()
            self._steer()

    def set_parallelism(self, parallelism: int) -> None:
        """From the next batch on."""
        with self._lock:
            self.change_state(parallelism=parallelism)
            self._limit = self._limit.rescaled(parallelism, self.query.slot_rate_at(parallelism))
            self._steer()

    def set_weights(self, weights: Sequence[float] | None) -> None:
        """How a batch is divided among the tasks, from the next batch on; null: evenly."""
        with self._lock:
            if weights != self._weights:
                self._weights = weights
                self._steer()

    def change_state(self, **changes: int | None) -> None:
        """What the query is to be started with; `set_parallelism` is for one that runs."""
        with self._lock:
            self._state = self._state.model_copy(update=changes)

    def on_progress(self, progress: Mapping[str, Any]) -> None:
        """Adapt the read limit to what the last batch took, unless that was done in time for the next."""
        batch_s = progress["durationMs"].get("triggerExecution", 0) / 1000
        records = dict.fromkeys(self.query.inputs, 0) | records_per_topic(progress)
        total = sum(records.values())
        run_id, batch_id = str(progress["runId"]), int(progress["batchId"])
        with self._lock:
            if run_id not in self.run_ids[-1:]:
                return
            self.restarts_in_a_row = 0
            is_first = self._adapted is None or self._adapted[0] != run_id
            if not is_first and self._adapted is not None and self._adapted[1] >= batch_id:
                return
            self._adapted = (run_id, batch_id)
            before = (self._limit, self._input_shares)
            adapted = self._limit.after_first if is_first else self._limit.after
            self._limit = adapted(batch_records=total, batch_s=batch_s)
            if total and len(records) > 1:
                self._input_shares = _smoothed(self._input_shares, {topic: n / total for topic, n in records.items()})
            if before != (self._limit, self._input_shares):
                self._steer()

    def _adapt_in_time(self) -> None:
        """Called when Spark is about to plan the next batch: an event about the last one would come too late."""
        streaming = self._streaming
        if streaming is not None and (progress := last_progress(streaming)) is not None:
            self.on_progress(progress)

    def stop_at_boundary(self) -> None:
        """Hand out no more records, let the running batch finish, then stop."""
        if not self.is_active:
            return
        for _ in range(BOUNDARY_TRIES):
            self._set_paused(True)
            self._wait_for_boundary()
            self._halt()
            if at_batch_boundary(self._folders.checkpoint(self.name)):
                self.acknowledge()
                return
            # a batch without records (a watermark moving on) began just then: let it finish
            self.start(paused=True)
        failure = self.failure()
        why = f": {failure.cause}" if failure else ""
        raise SluiceError(f"operator {self.name!r} does not come to rest between two batches{why}")

    def resume(self) -> None:
        """Hand out records again, restarting the query if it is stopped."""
        if self.is_active:
            self._set_paused(False)
        else:
            self.start()

    def written_records(self, batch_id: int) -> int | None:
        """What its sink counted of a batch; null for one that does not count, whose stages tell. To be asked once."""
        counts: dict[int, int] = getattr(self._sink, "written_records", {})
        return counts.pop(batch_id, None)

    def acknowledge(self) -> None:
        """Record in its topics what is done. The source does so when the next batch begins, which a stop prevents."""
        for topic, offset in committed_offsets(self._folders.checkpoint(self.name)).items():
            self._topics[topic].acknowledge(self.name, offset)

    def rewrite_state(self, partitions: int) -> None:
        """Move the state of the stopped query into another number of partitions; none before its first batch."""
        if last_batches(self._folders.checkpoint(self.name)) != NO_BATCHES:
            repartition_state(self._spark, self.checkpoint, partitions)
        self.change_state(state_partitions=partitions)

    def failure(self) -> Failure | None:
        """Why it ended by itself or was given to `fail`; None while it runs and after a stop."""
        if self._start_failure is not None or self._streaming is None or self._streaming.isActive:
            return self._start_failure
        error = self._streaming.exception()
        return None if error is None else Failure.of(error)

    def fail(self, error: Exception) -> None:
        """Record why it could not be started."""
        self._start_failure = Failure.of(error)

    def _set_paused(self, paused: bool) -> None:
        with self._lock:
            self._paused = paused
            self._steer()

    def _wait_for_boundary(self) -> None:
        deadline_s = time.monotonic() + self._settings.boundary_timeout_s
        while self.is_active:
            if (
                not self.in_batch
                and not self.is_initialising
                and at_batch_boundary(self._folders.checkpoint(self.name))
            ):
                return
            if time.monotonic() > deadline_s:
                raise SluiceError(
                    f"operator {self.name!r}: its batch did not end within {self._settings.boundary_timeout_s:g} s"
                )
            time.sleep(POLL_S)

    def _halt(self) -> None:
        if self._streaming is not None and self._streaming.isActive:
            self._streaming.stop()

    def _steer(self) -> None:
        """Write what the source reads before its next batch. Assumes the lock is held."""
        limit = self._limit
        for topic in self.query.inputs:
            share = self._input_shares[topic]
            ReaderControl(
                partitions=self._state.parallelism,
                weights=self._fitting_weights(),
                max_records_per_batch=max(1, round(limit.records * share)),
                paused=self._paused,
                slot_rate=None if limit.slot_rate is None else limit.slot_rate * share,
                bounded_topics=self._bounds(),
                columns=self._columns.get(topic),
            ).save(self._folders.control(self.name, topic))

    def _fitting_weights(self) -> list[float] | None:
        """None while the number of tasks changes: their weights follow within a second."""
        if self._weights is None or len(self._weights) != self._state.parallelism:
            return None
        return list(self._weights)

    def _earlier_limit(self) -> int | None:
        """As the run found in the folder had it, for the parallelism of now; the files that steered it still say so."""
        try:
            controls = [ReaderControl.load(self._folders.control(self.name, topic)) for topic in self.query.inputs]
        except BadInputError:
            return None
        limits = [control.max_records_per_batch for control in controls]
        if None in limits:
            return None
        return round(sum(limit or 0 for limit in limits) * self._state.parallelism / controls[0].partitions)

    def _bounds(self) -> dict[str, int]:
        bound = self._settings.topic_bound_records
        return {} if bound is None or self.query.sink is not None else {self._topics[self.query.output].locator: bound}


def _smoothed(old: Mapping[str, float], new: Mapping[str, float]) -> dict[str, float]:
    """Half old, half new; no input falls below a tenth, or it could never show that it has grown."""
    mixed = {topic: max(0.1, (old[topic] + new[topic]) / 2) for topic in old}
    total = sum(mixed.values())
    return {topic: share / total for topic, share in mixed.items()}
