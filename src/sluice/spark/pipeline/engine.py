"""Spark as an engine of the control loop: what `Runtime` does, in the loop's words and on the loop's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.control.engine import Ability, RecordCount
from sluice.errors import BadInputError, SluiceError, unknown_name
from sluice.model import Cluster, Graph, Observation, OperatorChange, Placement, Reconciliation, Target
from sluice.spark.clock import WallClock
from sluice.spark.masters import check_master
from sluice.spark.observe.metrics import make_observation
from sluice.spark.pipeline.compile import compile_pipeline
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.feed import Feed
from sluice.spark.pipeline.ledgers import Ledgers
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.pipeline.runtime import Rescale, RescaleResult, Runtime
from sluice.spark.pipeline.worker_side import WorkerSide
from sluice.spark.placed.classes import load_classes
from sluice.spark.placed.cluster import (
    FIRST_EXECUTOR_S,
    PLACED_SETTINGS,
    await_executors,
    check_shared,
)
from sluice.spark.placed.cluster import SETTINGS as CLUSTER_SETTINGS
from sluice.spark.placed.placing import Moves
from sluice.spark.placed.workers import Executor
from sluice.spark.topic.interface import TopicStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICK_S = 1.0


class SparkEngine:
    """Runs a `Pipeline`. `slots` bounds the sum of all parallelism; `threads` is what Spark may run at once.

    With a `master` the slots are the cores of its executors, one executor per worker; `slots` then only limits how many
    of them are used. `places` puts every task on the worker that the target's placement says; `elastic` has executors
    requested and released as the placement needs them; where the cluster `grows` a target may need more slots than
    there are yet, and tasks take turns until then; `capacity` (cpu, io, net) is that of every worker, for whoever
    computes placements. The first executor has to come within `executors_within_s`.

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
        slots: int | None = None,
        spark: SparkSession | None = None,
        master: str | None = None,
        places: bool = False,
        elastic: bool = False,
        grows: bool = False,
        executors_within_s: float = FIRST_EXECUTOR_S,
        capacity: Mapping[str, float | None] | None = None,
        session_settings: Mapping[str, str] | None = None,
        settings: QuerySettings | None = None,
        rescale: Rescale = "live",
        feed: Feed | None = None,
        store: TopicStore | None = None,
    ) -> None:
        from sluice.spark.session import SessionHandle, open_session

        pipeline.validate()
        if slots is not None and slots < 1:
            raise BadInputError(f"slots must be at least 1, got {slots}")
        if master is None and (places or slots is None):
            raise BadInputError("placement needs a cluster's master" if places else "slots are missing")
        if master is not None:
            check_master(master)
        self._sources = tuple(pipeline.sources)
        self.guarantees = {name: sink.guarantee for name, sink in pipeline.sink_specs.items()}
        """What a crash can do to the output of each sink, in one sentence."""
        self._feed = feed
        self._settings = settings or QuerySettings()
        self._rescale: Rescale = rescale
        self._session = (
            SessionHandle(spark, owned=False)
            if spark is not None
            else open_session(
                f"sluice {pipeline.name}",
                threads=task_threads(pipeline, slots or 1),
                master=master,
                settings={
                    **(CLUSTER_SETTINGS if master else {}),
                    **(PLACED_SETTINGS if places else {}),
                    **(session_settings or {}),
                },
                python_sources=store is not None,
            )
        )
        self.spark = self._session.spark
        self.worker_side: WorkerSide | None = None
        self._grows = grows
        try:
            compiled = compile_pipeline(pipeline, self.spark)
            self.runtime = Runtime(pipeline, compiled, self.spark, root, self._settings, store=store, places=places)
            self._slots = slots
            if master is not None:
                executors = await_executors(self.spark, executors_within_s)
                self._join_cluster(root, executors, slots, capacity or {}, elastic=elastic)
        except BaseException:
            self._session.close()
            raise
        self._graph = compiled.graph
        self._wanted: Placement | None = None
        self.clock = WallClock()
        self.ledgers = Ledgers(self.spark, self.runtime)
        self._observed_s = 0.0
        self._downtime_s = 0.0
        self._count: RecordCount | None = None

    @property
    def slots(self) -> int:
        """Those there are: on a cluster the cores of the executors, which come and go, up to the limit."""
        if self.worker_side is None:
            return self._slots or 0
        there = self.worker_side.slots
        return there if self._slots is None else min(self._slots, there)

    def _join_cluster(
        self,
        root: Path,
        executors: Sequence[Executor],
        limit: int | None,
        capacity: Mapping[str, float | None],
        *,
        elastic: bool,
    ) -> None:
        """Make sure that the workers can do their part."""
        cores = sum(one.cores for one in executors)
        if limit is not None and limit > cores:
            raise BadInputError(f"slots must be at most the {cores} cores of the executors, got {limit}")
        check_shared(self.spark, root, cores)
        load_classes(self.spark, self.runtime.folders.classes)
        self.worker_side = WorkerSide(self.spark, self.runtime, capacity, elastic=elastic)
        least = sum(query.min_parallelism for query in self.runtime.compiled.queries)
        if least > (limit or cores) and not self._grows:
            raise BadInputError(f"the pipeline needs at least {least} slots, the executors have {limit or cores} cores")

    @property
    def cluster(self) -> Cluster | None:
        """The workers there are now; null where all runs in one process."""
        return self.worker_side.cluster if self.worker_side else None

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def tick_s(self) -> float:
        return TICK_S

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset({"placement"}) if self.runtime.placing else frozenset()

    def start(self, target: Target) -> Target:
        self._check(target)
        self._wanted = self.runtime.saved_placement() or target.placement
        self.runtime.prepare(target.parallelism)
        self._keep_placement()
        self.ledgers.open(self._graph.topology, self._settings)
        self.runtime.start()
        self.clock.restart()
        if self._feed:
            self._feed.start({name: self.runtime.topics[name].locator for name in self._sources})
        return Target(parallelism=self.runtime.parallelism, placement=self._placement)

    @property
    def _placement(self) -> Placement | None:
        """As it is kept on the workers that are there."""
        return self.runtime.placing.in_force if self.runtime.placing else None

    def _keep_placement(self) -> Moves:
        return self.worker_side.place(self._wanted) if self.worker_side else Moves({})

    def observe(self) -> Observation:
        self.ledgers.sample()
        now_s = self.clock.now_s()
        interval_s = max(1e-3, now_s - self._observed_s)
        windows, samples_s = self.ledgers.close_windows(interval_s)
        self._observed_s = now_s
        observation = make_observation(
            windows,
            time_s=now_s,
            interval_s=interval_s,
            edges=self._graph.topology.edges,
            latency_samples_s=samples_s,
        )
        if self.worker_side is None:
            return observation
        io_rates = {name: one.io_rate for name, one in observation.operators.items() if one.io_rate is not None}
        workers, followed = self.worker_side.close_window(interval_s, io_rates)
        shares = self.runtime.placing.state_shares if self.runtime.placing else {}
        operators = {
            name: one.model_copy(update={"state_shares": shares.get(name)})
            for name, one in observation.operators.items()
        }
        return observation.model_copy(update={"operators": operators, "workers": workers, "placement": followed})

    def reconcile(self, target: Target) -> Reconciliation:
        before = self.runtime.parallelism
        if target.placement is not None and target.placement != self._wanted:
            try:
                self._check(target)
            except SluiceError as error:
                return self._refused(target, str(error))
            self._wanted = target.placement
        if target.parallelism == before:
            moves = self._keep_placement()
            return Reconciliation(requested=before, observed=self._running(before), detail=self._said(moves))
        try:
            self._check(target)
        except SluiceError as error:
            return self._refused(target, str(error))
        results = self.runtime.rescale(target.parallelism, self._rescale)
        moves = self._keep_placement()
        changed = [name for name, result in results.items() if result.after != result.before]
        standstill_s = max((result.standstill_s for result in results.values()), default=0.0)
        self._downtime_s += standstill_s
        self.ledgers.on_rescale(changed)
        now = self.runtime.parallelism
        return Reconciliation(
            requested=now,
            observed=self._running(now),
            changes={
                name: OperatorChange(before=result.before, requested=target.parallelism[name], error=result.error)
                for name, result in results.items()
            },
            downtime_s=standstill_s,
            detail="; ".join(filter(None, (_detail(results), self._said(moves)))) or None,
        )

    def _running(self, parallelism: dict[str, int]) -> dict[str, int]:
        return self.worker_side.running(parallelism, self._wanted) if self.worker_side else parallelism

    def _said(self, moves: Moves) -> str | None:
        """What the moved state partitions weigh: each is loaded from the checkpoint by its new worker."""
        if not moves.total:
            return None
        parts = []
        for name, count in moves.state_partitions.items():
            state = self.runtime.queries[name].state
            held = self.ledgers.state_bytes.get(name)
            weight = "" if held is None else f" ({held * count / state.state_partitions / 1e6:.1f} MB)"
            parts.append(f"{count} of {state.state_partitions} state partitions of {name}{weight}")
        return f"placement moves {', '.join(parts)}"

    def _refused(self, target: Target, why: str) -> Reconciliation:
        now = self.runtime.parallelism
        counts = {**dict.fromkeys(now, 0), **target.parallelism}
        differ = {name: count for name, count in counts.items() if now.get(name, 0) != count}
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
                self.ledgers.sample()
            finally:
                self._count = self.ledgers.count(self._downtime_s)
                self.runtime.close()
                self.ledgers.close()
                if self.worker_side:
                    self.worker_side.close()
                self._session.close()
        return self._count

    def maintain(self) -> tuple[str, ...]:
        """Start failed queries again, drop output nobody reads, look at the feed, take samples."""
        seen = self.worker_side.refresh() if self.worker_side else ()
        if self.worker_side:
            if self.worker_side.lost_some:
                self.ledgers.worker_lost()
            self.worker_side.sample()
            moved = self._said(self._keep_placement())
            seen += (*((moved,) if moved else ()), *self.worker_side.keep_executors(self._wanted))
        restarts = self.runtime.restart_failed()
        self.runtime.trim_output()
        if self._feed:
            self._feed.check()
        self.ledgers.sample()
        return seen + tuple(
            f"operator {one.operator!r} failed and was started again ({one.in_a_row} in a row): {one.cause}"
            for one in restarts
        )

    def _check(self, target: Target) -> None:
        for name in target.parallelism:
            if name not in self._graph.names:
                raise unknown_name("operator", name, self._graph.names)
        if target.sizes:
            raise BadInputError("pipelines on Spark have instances of one size: no sizes")
        if target.placement and not self.runtime.placing:
            raise BadInputError("this engine was not started to place tasks: no placement")
        if target.placement and target.placement.parallelism != target.parallelism:
            raise BadInputError("the target's placement has another number of instances than its parallelism")
        for name in self._graph.names:
            if name not in target.parallelism:
                raise BadInputError(f"the target has no parallelism for operator {name!r}")
        if target.slots > self.slots and not self._grows:
            raise BadInputError(f"the target needs {target.slots} slots, there are {self.slots}")
        for operator in self._graph.operators:
            count = target.parallelism[operator.name]
            high = operator.max_parallelism
            if count < operator.min_parallelism or (high is not None and count > high):
                raise BadInputError(
                    f"operator {operator.name!r}: parallelism must be from {operator.min_parallelism} to "
                    f"{high if high is not None else self.slots}, got {count}"
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
