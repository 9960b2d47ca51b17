"""A request as arrays, and what a plan costs: one row per layer (an operator, or a group of a skewed one), one column
per worker.

Everything a worker carries is a function of its own column of task counts: cpu and io are sums, and the network
load needs only the counts of this worker too, because a link is local exactly if both its ends are here
(CAPSys, equation 8). Loads are kept in units of cost (equation 4), so that a limit on a worker is a threshold.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sluice.model import Cluster, Edge, Graph, Placement, Worker
from sluice.model.base import Name
from sluice.placement.request import Costs, PlacementRequest, PlacementResult, TaskGroup, TaskLoad

DIMENSIONS = ("cpu", "io", "net")
CPU, IO, NET = 0, 1, 2
ROUNDING = 1e-9
"""Costs this close are equal: far below any difference a task makes, far above the rounding of sums."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
"""Tasks by layer and worker."""


class Links(NamedTuple):
    """Neighbours of every layer, one after the other: those of layer `l` are `layer[start[l]:start[l + 1]]`."""

    start: Ints
    layer: Ints
    forward: Ints


class Arrays(NamedTuple):
    """What the compiled search reads; a named tuple because that is what compiled code takes.

    `load[d, l]` is what one task adds to a worker's cost in cpu and io, and what one remote link adds in net;
    `inverse_size[d, w]` divides it by the worker's size (1 where all are equal); `offset[d]` is the even share.
    Workers of the same `kind` are interchangeable and stand side by side.
    """

    tasks: Ints
    load: Floats
    offset: Floats
    inverse_size: Floats
    slots: Ints
    kind: Ints
    pinned: Counts
    successors: Links
    predecessors: Links


@dataclass(frozen=True)
class PlacementProblem:
    """Layers heaviest first, workers by size; `operators[l]` names the operator that layer `l` is (a part of)."""

    request: PlacementRequest
    operators: tuple[str, ...]
    workers: tuple[Worker, ...]
    arrays: Arrays
    full: Floats
    """Load of a worker at its capacity, in units of cost, by dimension; infinite where capacities are unlimited."""

    @property
    def fits(self) -> bool:
        return int(self.arrays.tasks.sum()) <= int(self.arrays.slots.sum())

    def worker_costs(self, counts: Counts) -> Floats:
        """Cost of every worker by dimension; a plan's cost is the largest in each row."""
        arrays = self.arrays
        remote = np.zeros(counts.shape)
        for layer in range(len(arrays.tasks)):
            for at in range(arrays.successors.start[layer], arrays.successors.start[layer + 1]):
                target = arrays.successors.layer[at]
                if arrays.successors.forward[at]:
                    remote[layer] += np.maximum(counts[layer] - counts[target], 0)
                else:
                    remote[layer] += counts[layer] * (arrays.tasks[target] - counts[target])
        rows = (arrays.load[CPU] @ counts, arrays.load[IO] @ counts, arrays.load[NET] @ remote)
        return np.asarray(np.stack(rows) * arrays.inverse_size - arrays.offset[:, None])

    def costs(self, counts: Counts) -> Floats:
        # an idle cluster is even: rounding may leave a hair below 0
        return np.asarray(np.maximum(self.worker_costs(counts).max(axis=1), 0.0))

    def utilisation(self, costs: Floats) -> float:
        """How full the fullest resource of any worker is; above 1 if exceeded, 0 where no capacity is known."""
        return float(((costs + self.arrays.offset) / self.full).max())

    def limits_at(self, utilisation: float) -> Floats:
        """Costs at which no resource is fuller than this; infinite where no capacity is known."""
        return np.asarray(utilisation * self.full - self.arrays.offset)

    def result(
        self,
        counts: Counts,
        started_s: float,
        how: str,
        *,
        limits: Floats | None = None,
        explored: int = 0,
        gap: float | None = None,
    ) -> PlacementResult:
        """What a strategy returns; `how` ends the sentence that begins with the tasks and their costs."""
        costs, moved = self.costs(counts), None
        if self.request.present is not None:
            moved = moved_tasks(self.counts_of(self.request.present), counts)
            how = f"{how}, moving {moved} of {self.request.tasks} tasks"
        return PlacementResult(
            placement=self.placement_of(counts),
            costs=as_costs(costs),
            thresholds=None if limits is None else as_costs(limits),
            explored=explored,
            elapsed_s=time.perf_counter() - started_s,
            gap=gap,
            moved=moved,
            reason=f"{self.request.tasks} tasks on {len(self.workers)} workers cost {in_words(costs)}; {how}",
        )

    def counts_of(self, placement: Placement) -> Counts:
        """Heavy tasks are where the placement says; all others fill the groups of a skewed operator in their order.

        Tasks of unknown operators are left out.
        """
        counts = self._heavy_counts(placement)
        room = self.arrays.tasks - counts.sum(axis=1)
        for column, worker in enumerate(self.workers):
            for operator, tasks in placement.tasks.get(worker.name, {}).items():
                layers = self._layers_of(operator)
                left = tasks - int(counts[layers, column].sum())
                for layer in layers:
                    taken = min(left, int(room[layer]))
                    counts[layer, column] += taken
                    room[layer] -= taken
                    left -= taken
        return counts

    def _heavy_counts(self, placement: Placement) -> Counts:
        """The heaviest task there was is the heaviest there is, and so on."""
        counts = np.zeros_like(self.arrays.pinned)
        columns = {worker.name: column for column, worker in enumerate(self.workers)}
        for operator in self.request.groups:
            spots = [layer for layer in self._heavy_layers(operator) for _ in range(self.arrays.tasks[layer])]
            for layer, (worker, _) in zip(spots, placement.heavy_of(operator), strict=False):
                if worker in columns:
                    counts[layer, columns[worker]] += 1
        return counts

    def placement_of(self, counts: Counts) -> Placement:
        tasks: dict[str, dict[str, int]] = {worker.name: {} for worker in self.request.cluster.workers}
        heavy: dict[str, dict[str, tuple[float, ...]]] = {}
        for operator in self.request.graph.names:
            here = counts[self._layers_of(operator)].sum(axis=0)
            shares = self._heavy_layers(operator)
            for column, worker in enumerate(self.workers):
                if here[column]:
                    tasks[worker.name][operator] = int(here[column])
                if held := tuple(share for layer, share in shares.items() for _ in range(counts[layer, column])):
                    heavy.setdefault(worker.name, {})[operator] = held
        return Placement(tasks=tasks, heavy=heavy)

    def _heavy_layers(self, operator: str) -> dict[int, float]:
        """Groups whose tasks take more than an even share of the operator's CPU time, heaviest first: such a share."""
        layers = self._layers_of(operator)
        loads, tasks = self.arrays.load[CPU, layers], self.arrays.tasks[layers]
        total = float(loads @ tasks)
        shares = {layer: float(load) / total for layer, load in zip(layers, loads, strict=True)} if total else {}
        even = 1 / int(tasks.sum()) + ROUNDING
        heavy = sorted((layer for layer in layers if shares.get(layer, 0.0) > even), key=lambda layer: -shares[layer])
        return {layer: round(shares[layer], 4) for layer in heavy}

    def _layers_of(self, operator: str) -> list[int]:
        return [layer for layer, name in enumerate(self.operators) if name == operator]


def build(request: PlacementRequest, *, reordered: bool = True) -> PlacementProblem:
    """`reordered`: the heaviest operators first, which prunes early (CAPSys 4.4.2); else as the graph lists them."""
    groups = _heaviest_first(request) if reordered else _groups(request)
    operators = tuple(operator for operator, _ in groups)
    tasks = np.array([group.tasks for _, group in groups], np.int64)
    per_task = np.array([[getattr(group.load, name) for _, group in groups] for name in DIMENSIONS])
    workers = tuple(sorted(request.cluster.workers, key=lambda worker: _kind(request, worker)))
    inverse_size = 1.0 / _sizes(Cluster(workers=workers))
    slots = np.array([worker.slots for worker in workers], np.int64)

    lowest = (per_task @ tasks) / inverse_size.shape[1]
    lowest[NET] = 0.0
    highest = np.array([_heaviest_worker(per_task[d], tasks, slots, inverse_size[d]) for d in range(3)])
    spread = highest - lowest
    scale = np.divide(1.0, spread, out=np.zeros(3), where=spread > 1e-12 * highest)

    successors, predecessors, links = _links(request, groups)
    load = per_task * scale[:, None]
    load[NET] = np.divide(load[NET], links, out=np.zeros(len(tasks)), where=links > 0)
    kinds = [_kind(request, worker) for worker in workers]
    arrays = Arrays(
        tasks=tasks,
        load=load,
        offset=lowest * scale,
        inverse_size=inverse_size,
        slots=slots,
        kind=np.array([kinds.index(kind) for kind in kinds], np.int64),
        pinned=np.zeros((len(tasks), len(workers)), np.int64),
        successors=successors,
        predecessors=predecessors,
    )
    full = np.full(3, np.inf)
    for d, name in enumerate(DIMENSIONS):
        capacities = [getattr(worker, name) for worker in workers]
        if None not in capacities and scale[d] > 0:
            full[d] = np.mean(capacities) * scale[d]
    problem = PlacementProblem(request=request, operators=operators, workers=workers, arrays=arrays, full=full)
    if request.pinned is not None:
        arrays.pinned[:] = problem.counts_of(request.pinned)
    return problem


def _heaviest_first(request: PlacementRequest) -> list[tuple[str, TaskGroup]]:
    """Operators (or their groups) by the largest share of any resource they need: heavy ones prune early."""
    groups = _groups(request)
    totals = {d: sum(getattr(group.load, d) * group.tasks for _, group in groups) or 1.0 for d in DIMENSIONS}

    def weight(group: TaskGroup) -> float:
        return float(max(getattr(group.load, d) * group.tasks / totals[d] for d in DIMENSIONS))

    return sorted(groups, key=lambda named: -weight(named[1]))


def _groups(request: PlacementRequest) -> list[tuple[str, TaskGroup]]:
    return [
        (name, group)
        for name in request.graph.names
        for group in request.groups.get(name)
        or (TaskGroup(tasks=request.parallelism[name], load=request.loads.get(name, TaskLoad())),)
    ]


def _kind(request: PlacementRequest, worker: Worker) -> tuple[object, ...]:
    """Workers with the same size, capacities and pinned tasks are interchangeable."""
    pinned = request.pinned.tasks.get(worker.name, {}) if request.pinned else {}
    heavy = request.pinned.heavy.get(worker.name, {}) if request.pinned else {}
    held = tuple(sorted((name, count, heavy.get(name, ())) for name, count in pinned.items() if count))
    return (-worker.slots, worker.cpu or 0.0, worker.io or 0.0, worker.net or 0.0, held)


def _sizes(cluster: Cluster) -> Floats:
    """Size of every worker against the mean, by dimension: its capacity where all have one, else its slots."""
    rows = []
    for name in DIMENSIONS:
        known = [getattr(worker, name) for worker in cluster.workers]
        size = np.array([worker.slots for worker in cluster.workers] if None in known else known, float)
        rows.append(size / size.mean())
    return np.stack(rows)


def _heaviest_worker(per_task: Floats, tasks: Ints, slots: Ints, inverse_size: Floats) -> float:
    """The largest load any worker can get: its slots filled with the heaviest tasks."""
    order = np.argsort(-per_task, kind="stable")
    ends = np.cumsum(tasks[order])
    starts = ends - tasks[order]
    taken = np.clip(slots[:, None] - starts[None, :], 0, tasks[order][None, :])
    return float(((taken @ per_task[order]) * inverse_size).max())


def _links(request: PlacementRequest, groups: list[tuple[str, TaskGroup]]) -> tuple[Links, Links, Floats]:
    """Both directions of the layer graph, and the links every task of a layer sends to.

    A forward edge needs equal partners: between operators of different parallelism (or different groups) there is
    no task k for task k, and the edge links all with all, as engines do it.
    """
    layers: dict[str, list[int]] = {}
    for layer, (operator, _) in enumerate(groups):
        layers.setdefault(operator, []).append(layer)
    pairs: list[tuple[int, int, int]] = []
    links = np.zeros(len(groups))
    for edge in request.graph.edges:
        sources, targets = layers[edge.source], layers[edge.target]
        sizes = [[groups[layer][1].tasks for layer in side] for side in (sources, targets)]
        if edge.kind == "forward" and sizes[0] == sizes[1]:
            pairs += [(source, target, 1) for source, target in zip(sources, targets, strict=True)]
            links[sources] += 1
        else:
            pairs += [(source, target, 0) for source in sources for target in targets]
            links[sources] += sum(sizes[1])
    size = len(groups)
    forward = _neighbours(size, pairs)
    return forward, _neighbours(size, [(target, source, kind) for source, target, kind in pairs]), links


def _neighbours(size: int, pairs: list[tuple[int, int, int]]) -> Links:
    ordered = sorted(pairs)
    start = np.searchsorted([source for source, _, _ in ordered], np.arange(size + 1)).astype(np.int64)
    return Links(
        start=start,
        layer=np.array([target for _, target, _ in ordered], np.int64),
        forward=np.array([kind for _, _, kind in ordered], np.int64),
    )


def as_costs(values: Floats) -> Costs:
    """No cost exceeds 1: an unlimited threshold is reported as 1."""
    cpu, io, net = (float(min(value, 1.0)) for value in values)
    return Costs(cpu=cpu, io=io, net=net)


def in_words(costs: Floats) -> str:
    return " ".join(f"{name} {min(value, 1.0):.3f}" for name, value in zip(DIMENSIONS, costs, strict=True))


def moved_tasks(before: Counts, after: Counts) -> int:
    """Tasks that leave their worker; tasks that rescaling starts or ends are not counted."""
    survivors = np.minimum(before.sum(axis=1), after.sum(axis=1))
    return int(survivors.sum() - np.minimum(before, after).sum())


def lower_bounds(arrays: Arrays) -> Floats:
    """Costs no plan can go below, by dimension; equal to the optimum where one operator dominates a dimension."""
    return np.array([_lowest_additive(arrays, CPU), _lowest_additive(arrays, IO), _lowest_network(arrays)])


def _lowest_additive(arrays: Arrays, d: int) -> float:
    """The even share is cost 0. On equal workers one of them holds at least n/W of the n heaviest tasks, for any n:
    it weighs no less than that many of the lightest among them."""
    if np.ptp(arrays.inverse_size[d]) > ROUNDING:
        return 0.0
    workers = arrays.pinned.shape[1]
    order = np.argsort(-arrays.load[d], kind="stable")
    heaviest = np.repeat(arrays.load[d][order], arrays.tasks[order])
    sums = np.concatenate(([0.0], np.cumsum(heaviest)))
    taken = np.arange(1, len(heaviest) + 1)
    on_one_worker = -(-taken // workers)
    return max(float((sums[taken] - sums[taken - on_one_worker]).max() - arrays.offset[d]), 0.0)


def _lowest_network(arrays: Arrays) -> float:
    """The mean of what must leave the workers. Of the links between two layers at most `s p - p^2 / W` are local, for p
    the tasks of either, because both ends share the s slots of a worker."""
    workers = len(arrays.slots)
    slots = int(arrays.slots.max())
    remote = 0.0
    for layer in range(len(arrays.tasks)):
        for at in range(arrays.successors.start[layer], arrays.successors.start[layer + 1]):
            if arrays.successors.forward[at]:
                continue
            sides = (int(arrays.tasks[layer]), int(arrays.tasks[arrays.successors.layer[at]]))
            local = min(slots * side - side * side / workers for side in sides)
            remote += float(arrays.load[NET, layer]) * max(sides[0] * sides[1] - local, 0.0)
    return remote / float((1.0 / arrays.inverse_size[NET]).sum())


def remote_shares(graph: Graph, placement: Placement) -> dict[Name, dict[Name, float]]:
    """Worker -> operator -> remote links / links of its tasks there (CAPSys, equation 8); 0 for a sink.

    Forward edges between equal numbers of tasks pair as many as possible on the same worker; all other edges link
    every task with every task.
    """
    parallelism = placement.parallelism
    outgoing: dict[str, list[Edge]] = {name: [] for name in graph.names}
    for edge in graph.edges:
        if parallelism.get(edge.target):
            outgoing[edge.source].append(edge)
    return {
        worker: {name: _remote_share(here, name, outgoing[name], parallelism) for name, tasks in here.items() if tasks}
        for worker, here in placement.tasks.items()
    }


def _remote_share(here: dict[str, int], name: str, edges: list[Edge], parallelism: dict[str, int]) -> float:
    links = remote = 0.0
    for edge in edges:
        local = here.get(edge.target, 0)
        if edge.kind == "forward" and parallelism[edge.target] == parallelism[name]:
            links += 1
            remote += max(here[name] - local, 0) / here[name]
        else:
            links += parallelism[edge.target]
            remote += parallelism[edge.target] - local
    return remote / links if links else 0.0
