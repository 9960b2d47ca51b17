"""How many distinct plans there are, without listing them.

With identical workers a plan is a multiset of columns (a column: how many tasks of each operator one worker holds).
Multisets are counted like change for a coin: take the columns one after the other, each any number of times, and add
up the ways to reach every vector of tasks placed so far. Workers of different kinds are counted kind after kind.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from sluice.errors import BadInputError
from sluice.placement.problem import Problem

MOST_WORK = 2_000_000_000


def count_plans(problem: Problem) -> int:
    """Plans that differ in more than the names of interchangeable workers; 0 if the tasks do not fit."""
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
    if len(columns) * ways.size * workers > MOST_WORK:
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
