"""Compiled arithmetic on workers' columns of task counts: what they cost, and what one task more or less changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from sluice.placement.compiled import compiled

CPU, IO, NET = 0, 1, 2
ROUNDING = 1e-9
"""Costs this close are equal: far below any difference a task makes, far above the rounding of sums."""


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
            costs[d] = max(costs[d], total[d, worker] * arrays.relief[d, worker] - arrays.offset[d])
    return costs
