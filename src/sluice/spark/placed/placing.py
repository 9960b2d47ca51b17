"""The placement in force: plan files for the sources, places of the state partitions, kept while executors change.

The loop decides which placement is wanted. Between its decisions workers die, come back and join, and queries start
again: every second the wanted placement is fitted to the workers there are, and what differs is reported to Spark.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.files import replace_file
from sluice.model import Placement
from sluice.spark.internals.placed import StatePlaces
from sluice.spark.placed.assignment import fitted, moved, source_workers, state_workers
from sluice.spark.placed.stores import ASSUMED, stores_of
from sluice.spark.placed.workers import Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KEPT_PLANS = 20
"""Tasks are compared with the plan at the time their stage began."""


@dataclass(frozen=True)
class PlacedQuery:
    """What placing needs to know of an operator's query."""

    name: str
    plan: Path
    checkpoint: Path
    stateful: bool


@dataclass
class Held:
    """Where one operator's partitions were last reported to be."""

    source: list[str]
    """Executor of every source partition, as Spark names it."""
    state: list[str]
    """Worker of every state partition."""
    counts: dict[str, int] | None = None
    """Instances of every worker that the state was divided for."""
    reported: tuple[object, ...] = ()
    """Run, stores and executors of the state partitions as the coordinator last heard them."""
    history: list[tuple[float, tuple[str | None, ...]]] = field(default_factory=list)
    """When it was reported, and the executor of every state partition; the newest last."""


@dataclass(frozen=True)
class Moves:
    """What a change of placement made move."""

    state_partitions: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.state_partitions.values())


class Placing:
    """Called by the loop's thread, and by the threads that start queries."""

    def __init__(
        self,
        spark: SparkSession,
        queries: Mapping[str, PlacedQuery],
        state_places: Callable[[SparkSession, StreamingQuery], StatePlaces] = StatePlaces,
    ) -> None:
        self._spark = spark
        self._state_places = state_places
        self._queries = queries
        self._lock = threading.RLock()
        self._held = {name: Held([], []) for name in queries}
        self._runs: dict[str, tuple[str, StatePlaces]] = {}
        self._weights: dict[str, list[float]] = {}
        self.worths: Mapping[str, Mapping[str, float]] = {}
        """Operator -> worker -> what one task there is worth beside one elsewhere; 1 where nothing is said."""
        self.wanted: Placement | None = None
        self.in_force: Placement | None = None

    def apply(
        self,
        wanted: Placement,
        parallelism: Mapping[str, int],
        state_partitions: Mapping[str, int],
        workers: Workers,
    ) -> Moves:
        """Report to Spark what differs from the last report; the same again costs nothing."""
        with self._lock:
            self.wanted = wanted
            self._workers = workers
            self.in_force = fitted(wanted, parallelism, {name: one.cores for name, one in workers.items()})
            moves = {}
            for name in self._queries:
                count = self._place(name, self.in_force.of(name), state_partitions[name])
                if count:
                    moves[name] = count
            return Moves(moves)

    def task_weights(self, name: str) -> list[float] | None:
        """How an operator's input is divided among its source partitions; null: evenly."""
        worths = self.worths.get(name)
        if not worths or self.in_force is None:
            return None
        return [worths.get(worker, 1.0) for worker in source_workers(self.in_force.of(name))]

    def on_start(self, name: str, query: StreamingQuery) -> None:
        """A query has begun a new run, which knows nothing of where its state is."""
        if not self._queries[name].stateful:
            return
        with self._lock:
            self._runs[name] = (str(query.runId), self._state_places(self._spark, query))
            self._report_state(name)

    def weigh(self, state_s: Mapping[str, Mapping[int, float]]) -> None:
        """The CPU time that state partitions took in a window: keys may be skewed. Half old, half new."""
        with self._lock:
            for name, taken_s in state_s.items():
                total_s = sum(taken_s.values())
                if name not in self._held or total_s <= 0:
                    continue
                now = [taken_s.get(partition, 0.0) / total_s for partition in range(len(self._held[name].state))]
                old = self._weights.get(name, now)
                self._weights[name] = (
                    [(a + b) / 2 for a, b in zip(old, now, strict=True)] if len(old) == len(now) else now
                )

    def planned_state(self, name: str, partition: int, unix_s: float) -> str | None:
        """The executor a state partition was to be on at that time; null if nothing was planned."""
        with self._lock:
            for since_s, executors in reversed(self._held[name].history):
                if since_s <= unix_s:
                    return executors[partition] if partition < len(executors) else None
        return None

    def ran(self, name: str, partition: int, executor_id: str) -> None:
        """A task that began before a change was reported names its old place after it: then report the change again."""
        with self._lock:
            held = self._held[name]
            executor = self._workers.get(held.state[partition]) if partition < len(held.state) else None
            if name not in self._runs or executor is None or executor.executor_id == executor_id:
                return
            stores = stores_of(self._queries[name].checkpoint) or ASSUMED
            self._runs[name][1].report(stores, partition, executor.host, executor.executor_id)

    def restore(self, state: Mapping[str, list[str]]) -> None:
        """The state partitions as an earlier run held them, so that going on moves none."""
        for name, workers in state.items():
            self._held[name].state = list(workers)

    @property
    def state(self) -> dict[str, list[str]]:
        """Operator -> worker of every state partition."""
        return {name: list(held.state) for name, held in self._held.items() if held.state}

    def _place(self, name: str, counts: Mapping[str, int], partitions: int) -> int:
        query, held = self._queries[name], self._held[name]
        source = [self._workers[worker].place for worker in source_workers(counts)]
        if source != held.source:
            replace_file(query.plan, json.dumps({"places": source}).encode())
            held.source = source
        if not query.stateful:
            return 0
        before = held.state
        if dict(counts) != held.counts or len(before) != partitions:
            # weights change all the time: they count when instances move anyway
            worths = self.worths.get(name, {})
            worth = {worker: count * worths.get(worker, 1.0) for worker, count in counts.items()}
            held.state = state_workers(worth, partitions, before, self._weights.get(name, ()))
            held.counts = dict(counts)
        self._report_state(name)
        return moved(before, held.state)

    def _report_state(self, name: str) -> None:
        """Report to the coordinator if the run, its stores or the executors have changed since the last report."""
        held = self._held[name]
        if name not in self._runs or not held.state:
            return
        run_id, places = self._runs[name]
        stores = stores_of(self._queries[name].checkpoint) or ASSUMED
        executors = [self._workers.get(worker) for worker in held.state]
        reported = (run_id, tuple(sorted(stores.items())), tuple(executors))
        if reported == held.reported:
            return
        same_run = held.reported[:2] == reported[:2]
        earlier = held.reported[2] if same_run else ()
        for partition, executor in enumerate(executors):
            known = isinstance(earlier, tuple) and partition < len(earlier) and earlier[partition] == executor
            if executor is not None and not known:
                places.report(stores, partition, executor.host, executor.executor_id)
        held.reported = reported
        planned = tuple(None if executor is None else executor.executor_id for executor in executors)
        held.history = [*held.history[-KEPT_PLANS:], (time.time(), planned)]
