"""All queries of a pipeline in one Spark application: start, rescale, stop, and go on where the last run ended."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sluice.errors import BadInputError, SluiceError
from sluice.spark.pipeline.compile import CompiledPipeline, Query
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.folders import Folders, QueryState, SavedState, last_batches, state_partitions_of
from sluice.spark.pipeline.query import OperatorQuery, QuerySettings
from sluice.spark.topic import Topic
from sluice.spark.topic.sink import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rescale = Literal["live", "repartition"]
"""live: from the next batch on, nothing stops. repartition: stop between two batches, rewrite the state, restart."""


DISCARD = "discard"
"""Consumer of output topics that are not kept: a topic drops only what somebody has read."""
NO_PYTHON = "Python worker failed to connect back"
"""Spark gives a Python process ten seconds to start, which a busy machine may exceed."""
STARTS_TRIED = 12


class OperatorFailedError(SluiceError):
    """An operator's query ended by itself; `details` has the whole traceback."""

    def __init__(self, operator: str, cause: BaseException) -> None:
        self.operator = operator
        self.details = str(cause)
        super().__init__(f"operator {operator!r} failed: {_reason(self.details)}")


@dataclass(frozen=True)
class RescaleResult:
    """One operator's rescale; with `error` set it runs on as before."""

    before: int
    after: int
    standstill_s: float
    detail: str
    error: str | None = None


class Runtime:
    """Holds the queries. Every change of plan is on disk before it takes effect, so a crash resumes with it."""

    def __init__(
        self, pipeline: Pipeline, compiled: CompiledPipeline, spark: SparkSession, root: Path, settings: QuerySettings
    ) -> None:
        self.compiled = compiled
        self.folders = Folders(root, {name: Path(spec.topic) for name, spec in pipeline.sources.items() if spec.topic})
        self._spark = spark
        self._settings = settings
        self.topics: dict[str, Topic] = {}
        self.queries: dict[str, OperatorQuery] = {}
        self._saving = threading.Lock()

    def prepare(self, parallelism: Mapping[str, int]) -> None:
        """Everything but the first batch: topics, consumers, and queries of this parallelism.

        A folder that holds a run before this one goes on with that run's plan instead.
        """
        states = self._states(parallelism)
        self.topics = {
            name: Topic.create(self.folders.topic(name), arrow_schema(schema))
            for name, schema in self.compiled.topic_schemas().items()
        }
        self._register_consumers()
        self.queries = {
            query.name: OperatorQuery(query, self._spark, self.folders, self._settings, states[query.name])
            for query in self.compiled.queries
        }
        self._save()
        self._finish_interrupted()
        for query in self.queries.values():
            query.acknowledge()

    def start(self) -> None:
        """Start every operator that was prepared."""
        self._at_once(OperatorQuery.start)
        self.raise_failure()

    def trim_output(self) -> None:
        """Unless the output is to be kept, let go of what nobody reads."""
        if not self._settings.keep_output:
            for topic in self._unread_topics():
                topic.acknowledge(DISCARD, topic.end_offset())

    def query_of_run(self, run_id: str) -> OperatorQuery | None:
        return next((query for query in self.queries.values() if run_id in query.run_ids), None)

    @property
    def parallelism(self) -> dict[str, int]:
        return {name: query.state.parallelism for name, query in self.queries.items()}

    def rescale(self, target: Mapping[str, int], how: Rescale = "live") -> dict[str, RescaleResult]:
        """Change the operators that differ, all at the same time. One that fails runs on as it was; the rest change."""
        changes = {name: n for name, n in target.items() if n != self.queries[name].state.parallelism}
        if not changes:
            return {}
        before = self.parallelism
        moving = {name for name, n in changes.items() if how == "repartition" or self._needs_more_state(name, n)}
        for name in changes.keys() - moving:
            self.queries[name].set_parallelism(changes[name])
        self._save()
        with ThreadPoolExecutor(max(1, len(moving)), thread_name_prefix="rescale") as pool:
            jobs = {name: pool.submit(self._repartition, self.queries[name], changes[name]) for name in moving}
        self._save()
        results = {}
        for name in changes:
            stood_s, detail, error = jobs[name].result() if name in jobs else (0.0, "from the next batch on", None)
            results[name] = RescaleResult(before[name], self.queries[name].state.parallelism, stood_s, detail, error)
        return results

    def stop(self) -> None:
        """Every query comes to its batch boundary, all at the same time."""
        self._at_once(OperatorQuery.stop_at_boundary)

    def _at_once(self, act: Callable[[OperatorQuery], None]) -> None:
        with ThreadPoolExecutor(max(1, len(self.queries)), thread_name_prefix="queries") as pool:
            for done in [pool.submit(act, query) for query in self.queries.values()]:
                done.result()

    def raise_failure(self) -> None:
        """Raise what ended a query by itself; one that only failed to get its Python process is started again."""
        for query in self.queries.values():
            cause = None if query.is_active else query.failure()
            if cause is None:
                continue
            if not (NO_PYTHON in str(cause) and query.starts < STARTS_TRIED):
                raise OperatorFailedError(query.name, cause)
            query.start()

    def _repartition(self, query: OperatorQuery, parallelism: int) -> tuple[float, str, str | None]:
        """Seconds of standstill, where they went, and what went wrong. Assumes nothing else touches this query."""
        before = query.state
        partitions = max(parallelism, 1)
        try:
            began_s = time.monotonic()
            query.stop_at_boundary()
            stopped_s = time.monotonic()
            if query.query.stateful and partitions != before.state_partitions:
                query.state = before.model_copy(update={"repartition_to": partitions})
                self._save()
                query.rewrite_state(partitions)
            rewritten_s = time.monotonic()
            query.state = query.state.model_copy(update={"repartition_to": None})
            query.set_parallelism(parallelism)
            query.resume()
        except Exception as error:
            return time.monotonic() - began_s, "", self._roll_back(query, before, error)
        restarted_s = time.monotonic()
        detail = (
            f"batch boundary {stopped_s - began_s:.2f} s, state {rewritten_s - stopped_s:.2f} s, "
            f"restart {restarted_s - rewritten_s:.2f} s"
        )
        return restarted_s - stopped_s, detail, None

    def _roll_back(self, query: OperatorQuery, before: QueryState, error: Exception) -> str:
        """Run on as before. A rewrite is a batch of its own: one that began but did not end is ended, then undone."""
        attempted = query.state.repartition_to
        try:
            begun, done = last_batches(self.folders.checkpoint(query.name))
            if attempted is not None and begun > done:
                query.rewrite_state(attempted)
            if query.state.state_partitions != before.state_partitions:
                query.rewrite_state(before.state_partitions)
            query.state = before
            query.set_parallelism(before.parallelism)
            query.resume()
        except Exception as worse:
            return f"{_reason(str(error))}; and going back failed: {_reason(str(worse))}"
        return _reason(str(error))

    def _finish_interrupted(self) -> None:
        """A crash in the middle of a rewrite left its batch open: the same rewrite again completes it.

        In how many partitions the state is, Spark's own record says: a crash may have come between a rewrite and our
        note of it.
        """
        for query in self.queries.values():
            checkpoint = self.folders.checkpoint(query.name)
            begun, done = last_batches(checkpoint)
            wanted = query.state.repartition_to
            if wanted is not None and begun > done:
                query.rewrite_state(wanted)
            recorded = state_partitions_of(checkpoint) or query.state.state_partitions
            query.state = query.state.model_copy(update={"repartition_to": None, "state_partitions": recorded})
        self._save()

    def _needs_more_state(self, name: str, parallelism: int) -> bool:
        query = self.queries[name]
        return query.query.stateful and parallelism > query.state.state_partitions

    def _states(self, parallelism: Mapping[str, int]) -> dict[str, QueryState]:
        saved = self.folders.load()
        if saved is None:
            return {query.name: _first_state(query, parallelism[query.name]) for query in self.compiled.queries}
        names = {query.name for query in self.compiled.queries}
        if saved.pipeline != self.compiled.name or set(saved.queries) != names:
            raise BadInputError(
                f"{str(self.folders.root)!r} holds pipeline {saved.pipeline!r} ({', '.join(sorted(saved.queries))}), "
                f"not {self.compiled.name!r} ({', '.join(sorted(names))}); use another folder"
            )
        return dict(saved.queries)

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

    def _unread_topics(self) -> list[Topic]:
        read = {topic for query in self.compiled.queries for topic in query.inputs}
        return [self.topics[query.output] for query in self.compiled.queries if query.output not in read]

    def _save(self) -> None:
        """Operators that rescale together save from their own threads: the last one must have the newest states."""
        with self._saving:
            states = {name: query.state for name, query in self.queries.items()}
            self.folders.save(SavedState(pipeline=self.compiled.name, queries=states))


def _first_state(query: Query, parallelism: int) -> QueryState:
    return QueryState(
        parallelism=parallelism,
        state_partitions=max(query.first.state_partitions, parallelism if query.stateful else 1),
    )


def _reason(text: str) -> str:
    """The line of a long Spark or Python error that says what happened: the last that names an exception."""
    lines = [line.strip() for line in text.split("=== Streaming Query ===")[0].splitlines() if line.strip()]
    telling = [line for line in lines if "Error: " in line or "Exception: " in line]
    return re.sub(r"^:? ?(?:[a-z]+\.)+(?=[A-Z])", "", (telling[-1:] or lines[:1] or ["unknown"])[0])
