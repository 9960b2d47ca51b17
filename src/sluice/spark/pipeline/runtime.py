"""All queries of a pipeline in one Spark application: start, rescale, stop, and go on where the last run ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sluice.errors import BadInputError, SluiceError
from sluice.model import Placement
from sluice.spark.class_archive import queries_started
from sluice.spark.pipeline.compile import CompiledPipeline, Query
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.failure import Failure, OperatorFailedError, Restart
from sluice.spark.pipeline.folders import Folders, QueryState, SavedState, last_batches, state_partitions_of
from sluice.spark.pipeline.inflow import Inflow
from sluice.spark.pipeline.query import OperatorQuery, QuerySettings
from sluice.spark.placed.placing import Moves, PlacedQuery, Placing
from sluice.spark.placed.workers import Workers
from sluice.spark.topic.interface import RecordLog, TopicStore
from sluice.spark.topic.store import EmbeddedTopics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rescale = Literal["live", "repartition"]
"""live: from the next batch on, nothing stops. repartition: stop between two batches, rewrite the state, restart."""

DISCARD = "discard"
"""Consumer of output topics that are not kept: a topic drops only what somebody has read."""


@dataclass(frozen=True)
class RescaleResult:
    """The result for one operator; with `error` set it still has the parallelism it had before."""

    before: int
    after: int
    standstill_s: float = 0.0
    detail: str = ""
    error: str | None = None


class Runtime:
    """Holds the queries. Every change of plan is on disk before it takes effect, so a crash resumes with it."""

    def __init__(
        self,
        pipeline: Pipeline,
        compiled: CompiledPipeline,
        spark: SparkSession,
        root: Path,
        settings: QuerySettings,
        *,
        store: TopicStore | None = None,
        places: bool = False,
    ) -> None:
        self.compiled = compiled
        self.folders = Folders(root, {name: Path(topic) for name, topic in pipeline.named_topics().items()})
        self._spark = spark
        self._settings = settings
        self.placing = Placing(self._placed_queries()) if places else None
        self._store = store or EmbeddedTopics(self.folders.topic)
        self.topics: dict[str, RecordLog] = {}
        self._spec = pipeline
        self.inflows: dict[str, Inflow] = {}
        """Queries that bring records from sources that are no topics."""
        self.queries: dict[str, OperatorQuery] = {}
        self.restarts: list[Restart] = []
        """Every restart after a failure, oldest first."""
        self._restart_due_s: dict[str, float] = {}
        self._saving = threading.Lock()

    def prepare(self, parallelism: Mapping[str, int]) -> None:
        """Everything but the first batch: topics, consumers, and queries of this parallelism.

        A folder that holds a run before this one goes on with that run's plan instead.
        """
        states = self._states(parallelism)
        self.topics = {name: self._store.create(name, schema) for name, schema in self.compiled.topic_schemas().items()}
        self._register_consumers()
        self.queries = {
            query.name: OperatorQuery(
                query,
                self._spark,
                self.folders,
                self._settings,
                states[query.name],
                store=self._store,
                topics=self.topics,
                placed=self.placing is not None,
            )
            for query in self.compiled.queries
        }
        self.inflows = {
            name: Inflow(
                spec,
                self._spark,
                self.folders,
                self._settings,
                partial(self._store.sink, name, producer=name, same_tasks=False),
            )
            for name, spec in self._spec.sources.items()
            if spec.read is not None
        }
        self._save()
        for query in self.queries.values():
            self._finish_rewrite(query)
        self._save()
        for query in self.queries.values():
            query.acknowledge()

    def start(self) -> None:
        """Start every operator that was prepared."""
        self._at_once(_start_or_fail)
        queries_started.set()
        for inflow in self.inflows.values():
            inflow.start()
        self.restart_failed()

    def restart_failed(self) -> list[Restart]:
        """Start failed queries again from their checkpoints; raise OperatorFailedError where that cannot help.

        To be called every second: it never waits for a pause, but notes when the restart is due. The restarts of this
        call are returned; `restarts` has all of them.
        """
        done = [restart for inflow in self.inflows.values() if (restart := inflow.restart_if_failed()) is not None]
        self.restarts += done
        for name, query in self.queries.items():
            if (failure := query.failure()) is None:
                self._restart_due_s.pop(name, None)
                continue
            pause_s = failure.pause_s(query.restarts_in_a_row)
            if pause_s is None:
                raise OperatorFailedError(name, failure, query.restarts_in_a_row)
            if time.monotonic() >= self._restart_due_s.setdefault(name, time.monotonic() + pause_s):
                del self._restart_due_s[name]
                done.append(self._restart(query, failure))
        return done

    def _restart(self, query: OperatorQuery, failure: Failure) -> Restart:
        restart = Restart(operator=query.name, unix_s=time.time(), cause=failure.cause, in_a_row=query.count_restart())
        self.restarts.append(restart)
        try:
            self._finish_rewrite(query)
            self._save()
            query.start()
        except Exception as error:
            query.fail(error)
        return restart

    def trim_output(self) -> None:
        """Unless the output is to be kept, drop what nobody reads."""
        if not self._settings.keep_output:
            for topic in self._unread_topics():
                topic.acknowledge(DISCARD, topic.end_position())

    def query_of_run(self, run_id: str) -> OperatorQuery | None:
        return next((query for query in self.queries.values() if run_id in query.run_ids), None)

    def place(self, wanted: Placement, workers: Workers) -> Moves:
        """Have the operators where the placement says, as far as its workers are there; on disk first."""
        assert self.placing is not None
        before = self.placing.in_force
        moves = self.placing.apply(
            wanted, self.parallelism, {name: one.state.state_partitions for name, one in self.queries.items()}, workers
        )
        for name, query in self.queries.items():
            query.set_weights(self.placing.task_weights(name))
        if moves.total or before != self.placing.in_force:
            self._save()
        return moves

    def saved_placement(self) -> Placement | None:
        """As the run found in the folder had it; its state partitions stay where they were."""
        saved = self._saved()
        if saved is None or self.placing is None:
            return None
        self.placing.restore(saved.state_workers, saved.placement)
        return saved.placement

    def _placed_queries(self) -> dict[str, PlacedQuery]:
        return {
            query.name: PlacedQuery(
                query.name, self.folders.places(query.name), self.folders.checkpoint(query.name), query.stateful
            )
            for query in self.compiled.queries
        }

    @property
    def parallelism(self) -> dict[str, int]:
        return {name: query.state.parallelism for name, query in self.queries.items()}

    def rescale(self, target: Mapping[str, int], how: Rescale = "live") -> dict[str, RescaleResult]:
        """Change the operators that differ, all at the same time. One that fails runs on as it was; the rest change."""
        changes = {name: n for name, n in target.items() if n != self.queries[name].state.parallelism}
        if not changes:
            return {}
        moving = {name for name, n in changes.items() if how == "repartition" or self._needs_more_state(name, n)}
        results = {name: self._rescale_live(self.queries[name], changes[name]) for name in changes.keys() - moving}
        self._save()
        with ThreadPoolExecutor(max(1, len(moving)), thread_name_prefix="rescale") as pool:
            jobs = {name: pool.submit(self._repartition, self.queries[name], changes[name]) for name in moving}
        results |= {name: job.result() for name, job in jobs.items()}
        self._save()
        return {name: results[name] for name in changes}

    def stop(self) -> None:
        """Every query comes to its batch boundary, all at the same time."""
        for inflow in self.inflows.values():
            inflow.stop()
        self._at_once(OperatorQuery.stop_at_boundary)

    def close(self) -> None:
        """When everything is stopped and counted."""
        self._store.close()

    def _at_once(self, act: Callable[[OperatorQuery], None]) -> None:
        with ThreadPoolExecutor(max(1, len(self.queries)), thread_name_prefix="queries") as pool:
            for done in [pool.submit(act, query) for query in self.queries.values()]:
                done.result()

    def _rescale_live(self, query: OperatorQuery, parallelism: int) -> RescaleResult:
        before = query.state.parallelism
        query.set_parallelism(parallelism)
        return RescaleResult(before, parallelism, detail="live, from the next batch on")

    def _repartition(self, query: OperatorQuery, parallelism: int) -> RescaleResult:
        """Assumes nothing else stops or starts this query."""
        before = query.state
        if (failure := query.failure()) is not None:
            error = f"it failed and has not been started again yet: {failure.cause}"
            return RescaleResult(before.parallelism, before.parallelism, error=error)
        began_s = stopped_s = time.monotonic()
        try:
            query.stop_at_boundary()
            stopped_s = time.monotonic()
            if query.query.stateful and parallelism != before.state_partitions:
                query.change_state(repartition_to=parallelism)
                self._save()
                query.rewrite_state(parallelism)
            rewritten_s = time.monotonic()
            query.change_state(repartition_to=None)
            query.set_parallelism(parallelism)
            query.resume()
        except Exception as problem:
            error = self._roll_back(query, before, problem)
            return RescaleResult(
                before.parallelism, query.state.parallelism, standstill_s=time.monotonic() - began_s, error=error
            )
        restarted_s = time.monotonic()
        detail = (
            f"batch boundary {stopped_s - began_s:.2f} s, state {rewritten_s - stopped_s:.2f} s, "
            f"restart {restarted_s - rewritten_s:.2f} s"
        )
        return RescaleResult(before.parallelism, parallelism, standstill_s=restarted_s - stopped_s, detail=detail)

    def _roll_back(self, query: OperatorQuery, before: QueryState, error: Exception) -> str:
        """Run on as before, and say why. A rewrite that began but did not end is ended, then undone."""
        cause = Failure.of(error).cause
        query.set_parallelism(before.parallelism)
        try:
            self._finish_rewrite(query)
            if query.state.state_partitions != before.state_partitions:
                query.rewrite_state(before.state_partitions)
            query.resume()
        except Exception as worse:
            query.fail(worse)
            return f"{cause}; and going back failed: {Failure.of(worse).cause}"
        return cause

    def _finish_rewrite(self, query: OperatorQuery) -> None:
        """A rewrite is a batch of its own. One that was interrupted left it open: the same rewrite completes it.

        In how many partitions the state is, Spark's own record says: a crash may have come between a rewrite and our
        note of it.
        """
        checkpoint = self.folders.checkpoint(query.name)
        begun, done = last_batches(checkpoint)
        if (partitions := query.state.repartition_to) is not None and begun > done:
            query.rewrite_state(partitions)
        recorded = state_partitions_of(checkpoint) or query.state.state_partitions
        query.change_state(repartition_to=None, state_partitions=recorded)

    def _needs_more_state(self, name: str, parallelism: int) -> bool:
        query = self.queries[name]
        return query.query.stateful and parallelism > query.state.state_partitions

    def _states(self, parallelism: Mapping[str, int]) -> dict[str, QueryState]:
        saved = self._saved()
        if saved is None:
            return {query.name: _first_state(query, parallelism[query.name]) for query in self.compiled.queries}
        return dict(saved.queries)

    def _saved(self) -> SavedState | None:
        """The plan of an earlier run; bad input if the folder is that of another pipeline."""
        saved = self.folders.load()
        names = {query.name for query in self.compiled.queries}
        if saved is not None and (saved.pipeline != self.compiled.name or set(saved.queries) != names):
            raise BadInputError(
                f"{str(self.folders.root)!r} holds pipeline {saved.pipeline!r} ({', '.join(sorted(saved.queries))}), "
                f"not {self.compiled.name!r} ({', '.join(sorted(names))}); use another folder"
            )
        return saved

    def _register_consumers(self) -> None:
        """Before anything is written: a consumer that comes later would find the beginning trimmed."""
        for query in self.compiled.queries:
            for topic in query.inputs:
                self.topics[topic].register(query.name)
        for unread in self._unread_topics():
            if self._settings.keep_output:
                unread.unregister(DISCARD)
            else:
                unread.register(DISCARD)

    def _unread_topics(self) -> list[RecordLog]:
        read = {topic for query in self.compiled.queries for topic in query.inputs}
        return [
            self.topics[query.output]
            for query in self.compiled.queries
            if query.sink is None and query.output not in read
        ]

    def _save(self) -> None:
        """Operators that rescale together save from their own threads: the last one must have the newest states."""
        with self._saving:
            states = {name: query.state for name, query in self.queries.items()}
            placing = self.placing
            self.folders.save(
                SavedState(
                    pipeline=self.compiled.name,
                    queries=states,
                    placement=placing.wanted if placing else None,
                    state_workers=placing.state if placing else {},
                )
            )


def _first_state(query: Query, parallelism: int) -> QueryState:
    return QueryState(
        parallelism=parallelism,
        state_partitions=max(query.first.state_partitions, parallelism if query.stateful else 1),
    )


def _start_or_fail(query: OperatorQuery) -> None:
    """A failure is left to `restart_failed`, as one that comes later is."""
    try:
        query.start()
    except SluiceError:
        raise
    except Exception as error:
        query.fail(error)
