"""All plans, each once: searched depth first and kept where no other beats them (CAPSys 4.3 and 4.4), or counted.

The compiled search goes layer by layer, worker by worker. Workers of one kind that hold the same so far are
interchangeable: they get non-increasing counts. A branch ends when a worker must exceed a threshold, or when it must
already cost no less than a plan found before. Both tests use loads that only grow: cpu and io by nature; network by
assuming that successors not placed yet fill the free slots of this worker.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sluice.compiled import Compiler
from sluice.errors import BadInputError
from sluice.placement.problem import CPU, IO, NET, ROUNDING, Arrays, Counts, Floats, PlacementProblem, lower_bounds

NO_LIMITS = np.full(3, np.inf)
MOST_PLANS = 256
MOST_COUNTING_STEPS = 2_000_000_000

compiled = Compiler("the placement strategy 'caps'", "placement")


@dataclass
class ParetoSet:
    """The plans found so far that no other beats in all dimensions, with their costs and the search nodes spent."""

    arrays: Arrays
    costs: list[Floats] = field(default_factory=list)
    plans: list[Counts] = field(default_factory=list)
    explored: int = 0

    def add(self, counts: Counts) -> None:
        """Keep the plan unless a kept one is at least as good; plans it beats go."""
        costs: Floats = plan_costs(self.arrays, counts)
        if not any((kept <= costs + ROUNDING).all() for kept in self.costs):
            stay = [at for at, kept in enumerate(self.costs) if not (costs <= kept + ROUNDING).all()]
            self.costs = [*(self.costs[at] for at in stay), costs]
            self.plans = [*(self.plans[at] for at in stay), counts.copy()]

    def within(self, limits: Floats) -> list[int]:
        return [at for at, costs in enumerate(self.costs) if (costs <= limits + ROUNDING).all()]

    def enumerate_plans(self, limits: Floats, budget: int, cheapest: float = np.inf) -> bool:
        """Add every unbeaten plan within the limits; true if the budget of search nodes sufficed to see them all.

        With `cheapest` only plans whose costs sum up to less are searched, which is much faster.
        """
        costs = np.zeros((MOST_PLANS, 3))
        plans = np.zeros((MOST_PLANS, *self.arrays.pinned.shape), np.int64)
        given = min(len(self.costs), MOST_PLANS)
        if given:
            costs[:given], plans[:given] = self.costs[:given], self.plans[:given]
        bounds = lower_bounds(self.arrays)
        size, nodes, finished = search(self.arrays, limits, bounds, cheapest, budget, costs, plans, given, False)
        self.costs, self.plans = [*costs[:size].copy()], [*plans[:size].copy()]
        self.explored += int(nodes)
        return bool(finished)


def list_plans(arrays: Arrays, limits: Floats, *, most: int, budget: int) -> tuple[list[Counts], bool]:
    """All plans within the limits, and whether the list is complete."""
    plans = np.zeros((most, *arrays.pinned.shape), np.int64)
    size, _, finished = search(arrays, limits, np.zeros(3), np.inf, budget, np.zeros((most, 3)), plans, 0, True)
    return [*plans[:size]], bool(finished)


def count_within(arrays: Arrays, limits: Floats, *, budget: int) -> tuple[int, int, bool]:
    """How many plans keep the limits, the search nodes it took to see them, and whether that is all of them.

    Unlike `count_plans` it walks the tree, which takes time in proportion to the plans.
    """
    no_plans = np.zeros((0, *arrays.pinned.shape), np.int64)
    size, nodes, finished = search(arrays, limits, np.zeros(3), np.inf, budget, np.zeros((0, 3)), no_plans, 0, True)
    return int(size), int(nodes), bool(finished)


@compiled
def network_change(arrays: Any, counts: Any, worker: int, layer: int, step: int) -> float:
    """Change of the worker's network load when `step` (+1 or -1) tasks of `layer` come to it."""
    here = counts[layer, worker]
    change = 0.0
    after = arrays.successors
    for at in range(after.start[layer], after.start[layer + 1]):
        there = counts[after.layer[at], worker]
        if after.forward[at]:
            change += arrays.load[NET, layer] * (max(here + step - there, 0) - max(here - there, 0))
        else:
            change += arrays.load[NET, layer] * step * (arrays.tasks[after.layer[at]] - there)
    before = arrays.predecessors
    for at in range(before.start[layer], before.start[layer + 1]):
        source = before.layer[at]
        sending = counts[source, worker]
        if before.forward[at]:
            change += arrays.load[NET, source] * (max(sending - here - step, 0) - max(sending - here, 0))
        else:
            change -= arrays.load[NET, source] * step * sending
    return change


@compiled
def column_load(arrays: Any, counts: Any, worker: int, total: Any) -> None:
    """Write the worker's load by dimension, before it is divided by its size, into `total[:, worker]`."""
    total[:, worker] = 0.0
    after = arrays.successors
    for layer in range(counts.shape[0]):
        here = counts[layer, worker]
        if here == 0:
            continue
        total[CPU, worker] += arrays.load[CPU, layer] * here
        total[IO, worker] += arrays.load[IO, layer] * here
        remote = 0
        for at in range(after.start[layer], after.start[layer + 1]):
            there = counts[after.layer[at], worker]
            remote += max(here - there, 0) if after.forward[at] else here * (arrays.tasks[after.layer[at]] - there)
        total[NET, worker] += arrays.load[NET, layer] * remote


@compiled
def plan_costs(arrays: Any, counts: Any) -> Any:
    """The costs of a plan: its heaviest worker by dimension (CAPSys, equations 4 to 8)."""
    total = np.empty((3, counts.shape[1]))
    costs = np.zeros(3)
    for worker in range(counts.shape[1]):
        column_load(arrays, counts, worker, total)
        for d in range(3):
            costs[d] = max(costs[d], total[d, worker] * arrays.inverse_size[d, worker] - arrays.offset[d])
    return costs


@compiled
def _least_network(arrays: Any, counts: Any, worker: int, placed: int, free: int) -> float:
    """Network load the worker has at least, once layers `0..placed` are placed and `free` slots are left."""
    least = 0.0
    after = arrays.successors
    for layer in range(placed + 1):
        here = counts[layer, worker]
        if here == 0:
            continue
        remote = 0
        for at in range(after.start[layer], after.start[layer + 1]):
            target = after.layer[at]
            there = counts[target, worker] if target <= placed else min(arrays.tasks[target], free)
            remote += max(here - there, 0) if after.forward[at] else here * (arrays.tasks[target] - there)
        least += arrays.load[NET, layer] * remote
    return least


@compiled
def _beaten(kept: Any, size: int, cpu: float, io: float, net: float) -> bool:
    """Is there a plan that costs no more in any dimension?"""
    for at in range(size):
        if kept[at, CPU] <= cpu + ROUNDING and kept[at, IO] <= io + ROUNDING and kept[at, NET] <= net + ROUNDING:
            return True
    return False


@compiled
def _room(arrays: Any, counts: Any, layer: int, free: Any, reserved: Any, last_alike: Any, room_after: Any) -> None:
    """Before a layer: which workers are still alike, and how many of its tasks fit behind each of them.

    `last_alike[w]` is the last worker interchangeable with `w`; `room_after[w]` the slots of workers behind `w`.
    """
    workers = len(free)
    last_alike[workers - 1] = workers - 1
    room_after[workers - 1] = 0
    for worker in range(workers - 2, -1, -1):
        room_after[worker] = room_after[worker + 1] + max(free[worker + 1] - reserved[layer, worker + 1], 0)
        same = arrays.kind[worker] == arrays.kind[worker + 1]
        for earlier in range(layer):
            same = same and counts[earlier, worker] == counts[earlier, worker + 1]
        last_alike[worker] = last_alike[worker + 1] if same else worker


@compiled
def search(
    arrays: Any,
    limits: Any,
    unavoidable: Any,
    cheapest: float,
    budget: int,
    kept: Any,
    plans: Any,
    size: int,
    keep_all: bool,
) -> Any:
    """Visit every plan within the limits, most even first; keep those no other plan beats.

    `kept` and `plans` hold the costs and counts kept, the first `size` rows given. With `keep_all` every plan is
    kept until the arrays are full, or only counted if they have no room at all. With a finite `cheapest` only plans
    with a lower sum of costs are searched, each one found lowering it; no plan costs less than `unavoidable`. Returns
    (size, nodes visited, finished): not finished if the budget of nodes or the room for plans ran out.
    """
    layers, workers = arrays.pinned.shape
    ceiling = limits + arrays.offset + ROUNDING
    counts = np.zeros((layers, workers), np.int64)
    free = arrays.slots.copy()
    load = np.zeros((2, workers))
    left = np.zeros(layers, np.int64)
    last_alike = np.zeros((layers, workers), np.int64)
    room_after = np.zeros((layers, workers), np.int64)
    reserved = np.zeros((layers, workers), np.int64)
    pinned_after = np.zeros((layers, workers), np.int64)
    for layer in range(layers - 2, -1, -1):
        reserved[layer] = reserved[layer + 1] + arrays.pinned[layer + 1]
    for layer in range(layers):
        for worker in range(workers - 2, -1, -1):
            pinned_after[layer, worker] = pinned_after[layer, worker + 1] + arrays.pinned[layer, worker + 1]
    highest = np.zeros((layers * workers + 1, 3))
    upper = np.zeros(layers * workers, np.int64)
    nodes = 0
    depth = 0
    entering = True
    while depth >= 0:
        layer, worker = depth // workers, depth % workers
        if entering:
            if worker == 0:
                left[layer] = arrays.tasks[layer]
                _room(arrays, counts, layer, free, reserved, last_alike[layer], room_after[layer])
            most = min(left[layer] - pinned_after[layer, worker], free[worker] - reserved[layer, worker])
            if worker > 0 and last_alike[layer, worker - 1] >= worker:
                most = min(most, counts[layer, worker - 1])
            alike = last_alike[layer, worker] - worker + 1
            beyond = left[layer] - room_after[layer, last_alike[layer, worker]]
            least = max(arrays.pinned[layer, worker], left[layer] - room_after[layer, worker])
            least = max(least, (beyond + alike - 1) // alike if beyond > 0 else 0)
            upper[depth] = most
            counts[layer, worker] = least
        else:
            taken = counts[layer, worker]
            free[worker] += taken
            left[layer] += taken
            load[CPU, worker] -= arrays.load[CPU, layer] * taken
            load[IO, worker] -= arrays.load[IO, layer] * taken
            counts[layer, worker] += 1
        taken = counts[layer, worker]
        if taken > upper[depth]:
            counts[layer, worker] = 0
            depth -= 1
            entering = False
            continue
        if nodes == budget:
            return size, nodes, False
        nodes += 1
        free[worker] -= taken
        left[layer] -= taken
        load[CPU, worker] += arrays.load[CPU, layer] * taken
        load[IO, worker] += arrays.load[IO, layer] * taken
        cpu = load[CPU, worker] * arrays.inverse_size[CPU, worker]
        io = load[IO, worker] * arrays.inverse_size[IO, worker]
        if cpu > ceiling[CPU] or io > ceiling[IO]:
            # more tasks of this layer only weigh more: nothing beyond this count can fit
            upper[depth] = taken
            entering = False
            continue
        net = _least_network(arrays, counts, worker, layer, free[worker]) * arrays.inverse_size[NET, worker]
        reached = highest[depth + 1]
        reached[CPU] = max(highest[depth, CPU], cpu - arrays.offset[CPU])
        reached[IO] = max(highest[depth, IO], io - arrays.offset[IO])
        reached[NET] = max(highest[depth, NET], net - arrays.offset[NET])
        total = 0.0
        for d in range(3):
            total += max(reached[d], unavoidable[d])
        hopeless = net > ceiling[NET] or total >= cheapest - ROUNDING
        if hopeless or (not keep_all and _beaten(kept, size, reached[CPU], reached[IO], reached[NET])):
            entering = False
        elif depth + 1 < layers * workers:
            depth += 1
            entering = True
        else:
            if not keep_all:
                size = _drop_beaten(kept, plans, size, reached)
            if len(kept) > 0:
                if size == len(kept):
                    return size, nodes, False
                kept[size] = reached
                plans[size] = counts
            size += 1
            cheapest = min(cheapest, total) if np.isfinite(cheapest) else cheapest
            entering = False
    return size, nodes, True


@compiled
def _drop_beaten(kept: Any, plans: Any, size: int, costs: Any) -> int:
    """Remove what a new plan beats, keeping the order of the rest."""
    left = 0
    for at in range(size):
        worse = True
        for d in range(3):
            worse = worse and costs[d] <= kept[at, d] + ROUNDING
        if not worse:
            kept[left] = kept[at]
            plans[left] = plans[at]
            left += 1
    return left


def count_plans(problem: PlacementProblem) -> int:
    """Plans that differ in more than the names of interchangeable workers; 0 if the tasks do not fit.

    With identical workers a plan is a multiset of columns (a column: how many tasks of each operator one worker holds).
    Multisets are counted like change for a coin: take the columns one after the other, each any number of times, and
    add up the ways to reach every vector of tasks placed so far. Workers of different kinds are counted one kind after
    the other.
    """
    arrays = problem.arrays
    free = arrays.tasks - arrays.pinned.sum(axis=1)
    shape = tuple(int(tasks) + 1 for tasks in free)
    ways = np.zeros(shape, object)
    ways[(0,) * len(shape)] = 1
    for kind in np.unique(arrays.kind):
        alike = np.flatnonzero(arrays.kind == kind)
        slots = int(arrays.slots[alike[0]] - arrays.pinned[:, alike[0]].sum())
        ways = _fill(ways, len(alike), slots)
    return int(ways[tuple(size - 1 for size in shape)])


def _fill(ways: np.ndarray, workers: int, slots: int) -> np.ndarray:
    """Ways to have placed each vector of tasks after these interchangeable workers as well."""
    columns = _columns(ways.shape, slots)
    if len(columns) * ways.size * workers > MOST_COUNTING_STEPS:
        raise BadInputError(
            f"counting the plans of {math.prod(ways.shape)} task vectors with {len(columns)} different workers takes "
            "too long; count a smaller graph or cluster"
        )
    used = [ways, *(np.zeros_like(ways) for _ in range(workers))]
    for column in columns:
        here = tuple(slice(step, None) for step in column)
        before = tuple(slice(None, size - step) for size, step in zip(ways.shape, column, strict=True))
        for number in range(1, workers + 1):
            used[number][here] += used[number - 1][before]
    return np.asarray(sum(used[1:], start=used[0]))


def _columns(shape: tuple[int, ...], slots: int) -> list[tuple[int, ...]]:
    """What one worker can hold, the empty worker aside."""
    ranges = (range(min(size - 1, slots) + 1) for size in shape)
    return [column for column in itertools.product(*ranges) if 0 < sum(column) <= slots]
