"""Costs no plan can go below, by dimension: what a plan's gap is measured against."""

from __future__ import annotations

import numpy as np

from sluice.placement.columns import ROUNDING
from sluice.placement.problem import CPU, IO, NET, Arrays, Floats


def lower_bounds(arrays: Arrays) -> Floats:
    """Valid for any plan on these workers; equal to the optimum where one operator dominates a dimension."""
    return np.array([_additive(arrays, CPU), _additive(arrays, IO), _network(arrays)])


def _additive(arrays: Arrays, d: int) -> float:
    """The even share is cost 0. On equal workers one of them holds at least n/W of the n heaviest tasks, for any n:
    it weighs no less than that many of the lightest among them."""
    if np.ptp(arrays.relief[d]) > ROUNDING:
        return 0.0
    workers = arrays.pinned.shape[1]
    heaviest = np.repeat(*_descending(arrays.load[d], arrays.tasks))
    sums = np.concatenate(([0.0], np.cumsum(heaviest)))
    taken = np.arange(1, len(heaviest) + 1)
    crowd = -(-taken // workers)
    return max(float((sums[taken] - sums[taken - crowd]).max() - arrays.offset[d]), 0.0)


def _descending(load: Floats, tasks: np.ndarray) -> tuple[Floats, np.ndarray]:
    order = np.argsort(-load, kind="stable")
    return load[order], tasks[order]


def _network(arrays: Arrays) -> float:
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
    return remote / float((1.0 / arrays.relief[NET]).sum())
