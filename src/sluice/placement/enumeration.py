"""Compiled exhaustive search (CAPSys 4.3 and 4.4): layer by layer, worker by worker, each plan once.

Workers of one kind that hold the same so far are interchangeable: they get non-increasing counts. A branch ends when
a worker must exceed a threshold, or when what it must cost already is no better than a plan found before. Both tests
use loads that only grow: cpu and io by nature; network by taking, for successors not placed yet, that as many of them
as there are free slots will come to this worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.placement.columns import CPU, IO, NET, ROUNDING
from sluice.placement.compiled import compiled


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
def _beaten(front: Any, size: int, cpu: float, io: float, net: float) -> bool:
    """Is there a plan that costs no more in any dimension?"""
    for at in range(size):
        if front[at, CPU] <= cpu + ROUNDING and front[at, IO] <= io + ROUNDING and front[at, NET] <= net + ROUNDING:
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
    front: Any,
    plans: Any,
    size: int,
    keep_all: bool,
) -> Any:
    """Visit every plan within the limits, most even first; keep those no other plan beats.

    `front` and `plans` hold the costs and counts kept, the first `size` rows given. With `keep_all` every plan is
    kept until the arrays are full. With a finite `cheapest` only plans with a lower sum of costs are looked for, each
    that is found lowering it; no plan costs less than `unavoidable`. Returns (size, nodes visited, finished): not
    finished if the budget of nodes or the room for plans ran out.
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
        cpu = load[CPU, worker] * arrays.relief[CPU, worker]
        io = load[IO, worker] * arrays.relief[IO, worker]
        if cpu > ceiling[CPU] or io > ceiling[IO]:
            # more tasks of this layer only weigh more: nothing beyond this count can fit
            upper[depth] = taken
            entering = False
            continue
        net = _least_network(arrays, counts, worker, layer, free[worker]) * arrays.relief[NET, worker]
        reached = highest[depth + 1]
        reached[CPU] = max(highest[depth, CPU], cpu - arrays.offset[CPU])
        reached[IO] = max(highest[depth, IO], io - arrays.offset[IO])
        reached[NET] = max(highest[depth, NET], net - arrays.offset[NET])
        total = 0.0
        for d in range(3):
            total += max(reached[d], unavoidable[d])
        hopeless = net > ceiling[NET] or total >= cheapest - ROUNDING
        if hopeless or (not keep_all and _beaten(front, size, reached[CPU], reached[IO], reached[NET])):
            entering = False
        elif depth + 1 < layers * workers:
            depth += 1
            entering = True
        else:
            if not keep_all:
                size = _drop_beaten(front, plans, size, reached)
            if size == len(front):
                return size, nodes, False
            front[size] = reached
            plans[size] = counts
            size += 1
            cheapest = min(cheapest, total) if np.isfinite(cheapest) else cheapest
            entering = False
    return size, nodes, True


@compiled
def _drop_beaten(front: Any, plans: Any, size: int, costs: Any) -> int:
    """Remove what a new plan beats, keeping the order of the rest."""
    kept = 0
    for at in range(size):
        worse = True
        for d in range(3):
            worse = worse and costs[d] <= front[at, d] + ROUNDING
        if not worse:
            front[kept] = front[at]
            plans[kept] = plans[at]
            kept += 1
    return kept
