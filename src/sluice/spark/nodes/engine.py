"""A pipeline on nodes of different sizes, as an engine of the control loop: an instance of a size is such a node.

Each instance has its node to itself, unless the target has operators share nodes. The engine below runs as many tasks
of an operator on a node as that has slots, and each task reads what its node is worth: its cores at first, its measured
speed afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from sluice.control.engine import Ability, RecordCount
from sluice.errors import BadInputError, unknown_name
from sluice.files import replace_file
from sluice.model import (
    Graph,
    InstanceMix,
    Observation,
    OperatorChange,
    OperatorMetrics,
    Placement,
    Reconciliation,
    Target,
)
from sluice.spark.clock import WallClock
from sluice.spark.internals import executor_calls
from sluice.spark.nodes.draining import Drains
from sluice.spark.nodes.pool import NodePool
from sluice.spark.nodes.provider import WorkerNode
from sluice.spark.nodes.shares import Assignment, assign, assign_shared, bounded_slots, mix_of, slot_worths
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.worker_side import WorkerSide

log = logging.getLogger(__name__)

SIZES_FILE = "sizes.json"

Mixes = dict[str, InstanceMix]
"""Operator -> its instances by size."""


class SizedEngine:
    """`inner` runs on the nodes of `pool` and places tasks; without sizes an operator has those of `default_type`."""

    def __init__(self, inner: SparkEngine, pool: NodePool, *, default_type: str, root: Path) -> None:
        if inner.worker_side is None or inner.runtime.placing is None:
            raise BadInputError("sizes need a cluster's workers and tasks that are placed")
        self.inner = inner
        self.pool = pool
        self._workers: WorkerSide = inner.worker_side
        self._default_type = default_type
        self._file = root / SIZES_FILE
        self._requested: Mixes = {}
        self._assignment = Assignment({}, {}, {})
        self.emphasis: dict[str, float] = {}
        """Node -> factor on what it is worth: one that is sampled gets as much as it can take."""
        self.extra: Mixes = {}
        """Instances beside those of the target, such as one that is sampled."""
        self._drains = Drains(
            lambda: self._workers.workers,
            self._workers.active_tasks,
            lambda ids: executor_calls.decommission_executors(inner.spark, ids),
            inner.clock.now_s,
        )
        self._graph = Graph(
            operators=tuple(one.model_copy(update={"min_parallelism": 1}) for one in inner.graph.operators),
            edges=inner.graph.edges,
        )

    @property
    def graph(self) -> Graph:
        """Bounds are of instances here; those of tasks hold below."""
        return self._graph

    @property
    def clock(self) -> WallClock:
        return self.inner.clock

    @property
    def tick_s(self) -> float:
        return self.inner.tick_s

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset({"sizes", "shared_nodes"})

    @property
    def guarantees(self) -> dict[str, str]:
        return self.inner.guarantees

    def start(self, target: Target) -> Target:
        """With the mix of an earlier run in the folder, if there was one; whoever started the first nodes knows it."""
        target = saved_sizes(self._file.parent) or target
        mixes = self._mixes(target)
        self._check(mixes)
        self._requested = mixes
        self.pool.tick(self._hosts, self._drains)
        self._assignment = self._assigned(mixes, target.shared_nodes)
        self.inner.start(self._tasks())
        return self._save(mixes, target.shared_nodes)

    def observe(self) -> Observation:
        seen = self.inner.observe()
        operators = {name: self._sized(name, metrics) for name, metrics in seen.operators.items()}
        return seen.model_copy(update={"operators": operators, "node_types": self.pool.metrics()})

    def maintain(self) -> tuple[str, ...]:
        assert self.inner.runtime.placing is not None
        self.inner.runtime.placing.worths = self._worths()
        said = self.inner.maintain()
        return said + self.pool.tick(self._hosts, self._drains)

    def reconcile(self, target: Target) -> Reconciliation:
        mixes = self._mixes(target)
        before = self._requested
        try:
            self._check(mixes)
        except BadInputError as error:
            return self._refused(target, mixes, str(error))
        self._requested = mixes
        if mixes != before or target.shared_nodes != self._assignment.shared:
            self._save(mixes, target.shared_nodes)
        all_mixes = _added(mixes, self.extra)
        assignment = self._assignment = self._assigned(all_mixes, target.shared_nodes)
        self.pool.reconcile(
            assignment.missing_nodes, [name for name in self.pool.ready if name not in assignment.serving]
        )
        standstill_s, detail = self._apply_tasks()
        there = {name: self._there(name) for name in mixes}
        changes = {
            name: OperatorChange(before=sum(before.get(name, {}).values()), requested=sum(mix.values()))
            for name, mix in mixes.items()
            if mix != before.get(name)
        }
        return Reconciliation(
            requested={name: sum(mix.values()) for name, mix in mixes.items()},
            observed={name: _fulfilled(mixes[name], there[name]) for name in mixes},
            sizes=there,
            changes=changes,
            downtime_s=standstill_s,
            detail="; ".join(filter(None, (self._sentence() if changes else None, detail))) or None,
        )

    def stop(self) -> RecordCount:
        try:
            return self.inner.stop()
        finally:
            for left in self.pool.close():
                log.warning("%s", left)

    def nodes_of(self, operator: str) -> list[WorkerNode]:
        return [self.pool.ready[name] for name in self._assignment.of(operator) if name in self.pool.ready]

    def slot_speed(self, operator: str, node: WorkerNode) -> tuple[float | None, float | None]:
        """Records/s of one slot of a node, and how long its tasks took, in the last window; null without a task."""
        executor = self._workers.workers.get(node.host)
        key = (operator, executor.executor_id if executor else "")
        return self._workers.speeds.window.get(key), self._workers.speeds.task_s.get(key)

    def _assigned(self, mixes: Mixes, shared: bool) -> Assignment:
        return (assign_shared if shared else assign)(mixes, self.pool.ready, self._assignment.serving)

    @property
    def _hosts(self) -> set[str]:
        return set(self._workers.workers)

    def _mixes(self, target: Target) -> Mixes:
        return {
            name: {size: count for size, count in target.sizes.get(name, {self._default_type: count}).items() if count}
            for name, count in target.parallelism.items()
        }

    def _check(self, mixes: Mixes) -> None:
        for name in self._graph.names:
            if name not in mixes:
                raise BadInputError(f"the target has no instances for operator {name!r}")
        for name in mixes:
            if name not in self._graph.names:
                raise unknown_name("operator", name, self._graph.names)
        for name, mix in mixes.items():
            for size in mix:
                if size not in self.pool.types:
                    raise BadInputError(
                        f"operator {name!r}: no node type {size!r}; those that can be started: "
                        f"{', '.join(sorted(self.pool.types))}"
                    )

    def _refused(self, target: Target, mixes: Mixes, why: str) -> Reconciliation:
        now = {name: sum(mix.values()) for name, mix in self._requested.items()}
        changes = {
            name: OperatorChange(before=now.get(name, 0), requested=count, error=why)
            for name, count in target.parallelism.items()
            if mixes.get(name) != self._requested.get(name)
        }
        return Reconciliation(requested=now, observed=now, changes=changes)

    def _there(self, operator: str) -> InstanceMix:
        """Of the nodes that serve an operator, those with an executor; the extra ones left out."""
        names = [name for name in self._assignment.of(operator) if self._has_executor(name)]
        mix = mix_of(names, self.pool.ready)
        for size, count in self.extra.get(operator, {}).items():
            mix[size] = mix.get(size, 0) - count
        return {size: count for size, count in mix.items() if count > 0}

    def _has_executor(self, name: str) -> bool:
        return name in self.pool.ready and self.pool.ready[name].host in self._workers.workers

    def _tasks(self) -> Target:
        """What the engine below is to run: tasks instead of instances, each on a worker."""
        tasks: dict[str, dict[str, int]] = {}
        for operator in self.inner.graph.operators:
            slots = {
                self.pool.ready[name].host: self._workers.workers[self.pool.ready[name].host].cores
                for name in self._assignment.of(operator.name)
                if self._has_executor(name)
            }
            # an operator without a node of its own runs on somebody else's until it has one
            slots = slots or {min(self._hosts): 1}
            for host, count in bounded_slots(slots, operator.min_parallelism, operator.max_parallelism).items():
                tasks.setdefault(host, {})[operator.name] = count
        placement = Placement(tasks=tasks)
        return Target(parallelism=placement.parallelism, placement=placement)

    def _apply_tasks(self) -> tuple[float, str | None]:
        assert self.inner.runtime.placing is not None
        self.inner.runtime.placing.worths = self._worths()
        done = self.inner.reconcile(self._tasks())
        problems = [change.error for change in done.changes.values() if change.error]
        return done.downtime_s, "; ".join(filter(None, (*problems, done.detail))) or None

    def _worths(self) -> dict[str, dict[str, float]]:
        found = {}
        for operator in self._graph.names:
            nodes = {one.host: one for one in self.nodes_of(operator) if one.host in self._workers.workers}
            if not nodes:
                continue
            slots = {host: self._workers.workers[host].cores for host in nodes}
            types = {host: self.pool.types[node.type] for host, node in nodes.items()}
            by_executor = self._workers.speeds.of(operator)
            speeds = {
                host: by_executor[executor.executor_id]
                for host in nodes
                if (executor := self._workers.workers[host]).executor_id in by_executor
            }
            worths = slot_worths(slots, types, speeds)
            found[operator] = {
                host: round(worth * self.emphasis.get(nodes[host].name, 1.0), 3) for host, worth in worths.items()
            }
        return found

    def _sized(self, name: str, metrics: OperatorMetrics) -> OperatorMetrics:
        mix = self._there(name) or {self._default_type: 1}
        known = {"parallelism": sum(mix.values()), "sizes": mix, "size_rates": self._size_rates(name) or None}
        if any(operator == name for operator, _ in self._workers.speeds.fresh):
            # an executor that is new loads classes and compiles: that is not how fast the operator is
            known |= dict.fromkeys(("busy", "idle", "true_input_rate", "true_output_rate"))
        return metrics.model_copy(update=known)

    def _size_rates(self, operator: str) -> dict[str, float]:
        """Of one instance while it works: the mean of those of its type in the last window, new ones left out."""
        rates: dict[str, list[float]] = {}
        for node in self.nodes_of(operator):
            speed, _ = self.slot_speed(operator, node)
            executor = self._workers.workers.get(node.host)
            if speed and executor and (operator, executor.executor_id) not in self._workers.speeds.fresh:
                slots = executor.cores
                rates.setdefault(node.type, []).append(speed * slots)
        return {size: sum(found) / len(found) for size, found in rates.items()}

    def _sentence(self) -> str:
        """Who runs where, and what is still to come."""
        worths = self._worths()
        parts = []
        for operator in self._graph.names:
            nodes = self.nodes_of(operator)
            weights = {
                node.name: worths.get(operator, {}).get(node.host, 0.0) * self._workers.workers[node.host].cores
                for node in nodes
                if node.host in self._workers.workers
            }
            total = sum(weights.values()) or 1.0
            shares = ", ".join(f"{name} ({weight / total:.0%})" for name, weight in weights.items())
            coming = "+".join(f"{n} {size}" for size, n in self._assignment.missing.get(operator, {}).items())
            parts.append(f"{operator} on {shares or 'no node'}{f', {coming} to come' if coming else ''}")
        return f"nodes: {'; '.join(parts)}"

    def _save(self, mixes: Mixes, shared: bool) -> Target:
        counts = {name: sum(mix.values()) for name, mix in mixes.items()}
        target = Target(parallelism=counts, sizes=mixes, shared_nodes=shared)
        replace_file(self._file, target.to_json().encode(), durable=True)
        return target


def saved_sizes(root: Path) -> Target | None:
    """As a run in this folder last had them; null if none ran with sizes."""
    try:
        return Target.model_validate_json((root / SIZES_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise BadInputError(f"{str(root / SIZES_FILE)!r} does not say which sizes a run had") from error


def _added(mixes: Mixes, extra: Mixes) -> Mixes:
    """Both together."""
    return {
        name: {size: mix.get(size, 0) + extra.get(name, {}).get(size, 0) for size in {**mix, **extra.get(name, {})}}
        for name, mix in mixes.items()
    }


def _fulfilled(mix: Mapping[str, int], there: Mapping[str, int]) -> int:
    """Instances of the mix that are there; where others still stand in for them, none of those."""
    if dict(mix) == dict(there):
        return sum(mix.values())
    return sum(min(count, there.get(size, 0)) for size, count in mix.items())
