"""A request as arrays: one row per layer (an operator, or a group of a skewed one), one column per worker.

Everything a worker carries is a function of its own column of task counts: cpu and io are sums, and the network
load needs only the counts of this worker too, because a link is local exactly if both its ends are here
(CAPSys, equation 8). Loads are kept in units of cost (equation 4), so that a limit on a worker is a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sluice.model import Cluster, Placement, Worker
from sluice.placement.base import PlacementRequest, TaskGroup, TaskLoad

DIMENSIONS = ("cpu", "io", "net")
CPU, IO, NET = range(3)

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
    `relief[d, w]` divides it by the worker's size (1 where all are equal); `offset[d]` is the even share.
    Workers of the same `kind` are interchangeable and stand side by side.
    """

    tasks: Ints
    load: Floats
    offset: Floats
    relief: Floats
    slots: Ints
    kind: Ints
    pinned: Counts
    successors: Links
    predecessors: Links


@dataclass(frozen=True)
class Problem:
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
        return np.asarray(np.stack(rows) * arrays.relief - arrays.offset[:, None])

    def costs(self, counts: Counts) -> Floats:
        # an idle cluster is even: rounding may leave a hair below 0
        return np.asarray(np.maximum(self.worker_costs(counts).max(axis=1), 0.0))

    def utilisation(self, costs: Floats) -> float:
        """How full the fullest resource of any worker is; above 1 if exceeded, 0 where no capacity is known."""
        return float(((costs + self.arrays.offset) / self.full).max())

    def limits_at(self, utilisation: float) -> Floats:
        """Costs at which no resource is fuller than this; infinite where no capacity is known."""
        return np.asarray(utilisation * self.full - self.arrays.offset)

    def counts_of(self, placement: Placement) -> Counts:
        """Tasks of a skewed operator fill its groups heaviest first; tasks of unknown operators are left out."""
        counts = np.zeros_like(self.arrays.pinned)
        room = self.arrays.tasks.copy()
        for column, worker in enumerate(self.workers):
            for operator, wanted in placement.tasks.get(worker.name, {}).items():
                left = wanted
                for layer in self._layers_of(operator):
                    taken = min(left, int(room[layer]))
                    counts[layer, column] += taken
                    room[layer] -= taken
                    left -= taken
        return counts

    def placement_of(self, counts: Counts) -> Placement:
        found: dict[str, dict[str, int]] = {worker.name: {} for worker in self.request.cluster.workers}
        for operator in self.request.graph.names:
            here = counts[self._layers_of(operator)].sum(axis=0)
            for column, worker in enumerate(self.workers):
                if here[column]:
                    found[worker.name][operator] = int(here[column])
        return Placement(tasks=found)

    def _layers_of(self, operator: str) -> list[int]:
        return [layer for layer, name in enumerate(self.operators) if name == operator]


def build(request: PlacementRequest) -> Problem:
    groups = _heaviest_first(request)
    operators = tuple(operator for operator, _ in groups)
    tasks = np.array([group.tasks for _, group in groups], np.int64)
    per_task = np.array([[getattr(group.load, name) for _, group in groups] for name in DIMENSIONS])
    workers = tuple(sorted(request.cluster.workers, key=lambda worker: _likeness(request, worker)))
    relief = 1.0 / _sizes(Cluster(workers=workers))
    slots = np.array([worker.slots for worker in workers], np.int64)

    lowest = (per_task @ tasks) / relief.shape[1]
    lowest[NET] = 0.0
    highest = np.array([_heaviest_worker(per_task[d], tasks, slots, relief[d]) for d in range(3)])
    spread = highest - lowest
    scale = np.divide(1.0, spread, out=np.zeros(3), where=spread > 1e-12 * highest)

    successors, predecessors, links = _links(request, groups)
    load = per_task * scale[:, None]
    load[NET] = np.divide(load[NET], links, out=np.zeros(len(tasks)), where=links > 0)
    alike = [_likeness(request, worker) for worker in workers]
    arrays = Arrays(
        tasks=tasks,
        load=load,
        offset=lowest * scale,
        relief=relief,
        slots=slots,
        kind=np.array([alike.index(found) for found in alike], np.int64),
        pinned=np.zeros((len(tasks), len(workers)), np.int64),
        successors=successors,
        predecessors=predecessors,
    )
    full = np.full(3, np.inf)
    for d, name in enumerate(DIMENSIONS):
        capacities = [getattr(worker, name) for worker in workers]
        if None not in capacities and scale[d] > 0:
            full[d] = np.mean(capacities) * scale[d]
    problem = Problem(request=request, operators=operators, workers=workers, arrays=arrays, full=full)
    if request.pinned is not None:
        arrays.pinned[:] = problem.counts_of(request.pinned)
    return problem


def _heaviest_first(request: PlacementRequest) -> list[tuple[str, TaskGroup]]:
    """Operators (or their groups) by the largest share of any resource they ask for: heavy ones prune early."""
    groups = [
        (name, group)
        for name in request.graph.names
        for group in request.groups.get(name)
        or (TaskGroup(tasks=request.parallelism[name], load=request.loads.get(name, TaskLoad())),)
    ]
    totals = {d: sum(getattr(group.load, d) * group.tasks for _, group in groups) or 1.0 for d in DIMENSIONS}

    def weight(group: TaskGroup) -> float:
        return float(max(getattr(group.load, d) * group.tasks / totals[d] for d in DIMENSIONS))

    return sorted(groups, key=lambda found: -weight(found[1]))


def _likeness(request: PlacementRequest, worker: Worker) -> tuple[object, ...]:
    """Workers with the same size, capacities and pinned tasks are interchangeable."""
    pinned = request.pinned.tasks.get(worker.name, {}) if request.pinned else {}
    held = tuple(sorted((name, count) for name, count in pinned.items() if count))
    return (-worker.slots, worker.cpu or 0.0, worker.io or 0.0, worker.net or 0.0, held)


def _sizes(cluster: Cluster) -> Floats:
    """Size of every worker against the mean, by dimension: its capacity where all have one, else its slots."""
    rows = []
    for name in DIMENSIONS:
        known = [getattr(worker, name) for worker in cluster.workers]
        size = np.array([worker.slots for worker in cluster.workers] if None in known else known, float)
        rows.append(size / size.mean())
    return np.stack(rows)


def _heaviest_worker(per_task: Floats, tasks: Ints, slots: Ints, relief: Floats) -> float:
    """The largest load any worker can get: its slots filled with the heaviest tasks there are."""
    order = np.argsort(-per_task, kind="stable")
    ends = np.cumsum(tasks[order])
    starts = ends - tasks[order]
    taken = np.clip(slots[:, None] - starts[None, :], 0, tasks[order][None, :])
    return float(((taken @ per_task[order]) * relief).max())


def _links(request: PlacementRequest, groups: list[tuple[str, TaskGroup]]) -> tuple[Links, Links, Floats]:
    """Both directions of the layer graph, and the links every task of a layer sends to.

    A forward edge needs equal partners: between operators of different parallelism (or different groups) there is
    no task k for task k, and the edge links all with all, as engines do it.
    """
    layers: dict[str, list[int]] = {}
    for layer, (operator, _) in enumerate(groups):
        layers.setdefault(operator, []).append(layer)
    found: list[tuple[int, int, int]] = []
    links = np.zeros(len(groups))
    for edge in request.graph.edges:
        sources, targets = layers[edge.source], layers[edge.target]
        sizes = [[groups[layer][1].tasks for layer in side] for side in (sources, targets)]
        if edge.kind == "forward" and sizes[0] == sizes[1]:
            found += [(source, target, 1) for source, target in zip(sources, targets, strict=True)]
            links[sources] += 1
        else:
            found += [(source, target, 0) for source in sources for target in targets]
            links[sources] += sum(sizes[1])
    size = len(groups)
    forward = _neighbours(size, found)
    return forward, _neighbours(size, [(target, source, kind) for source, target, kind in found]), links


def _neighbours(size: int, found: list[tuple[int, int, int]]) -> Links:
    ordered = sorted(found)
    start = np.searchsorted([source for source, _, _ in ordered], np.arange(size + 1)).astype(np.int64)
    return Links(
        start=start,
        layer=np.array([target for _, target, _ in ordered], np.int64),
        forward=np.array([kind for _, _, kind in ordered], np.int64),
    )
