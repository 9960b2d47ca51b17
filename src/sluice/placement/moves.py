"""Equal plans differ in what it takes to get there: name the workers, and choose, so that few tasks move."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from sluice.placement.answers import moved_tasks
from sluice.placement.columns import plan_costs
from sluice.placement.descent import settle
from sluice.placement.front import list_plans
from sluice.placement.problem import Counts, Floats, Problem

MOST_EQUAL_PLANS = 400
NODES = 20_000
STEPS = 100


def name_workers(problem: Problem, before: Counts, counts: Counts) -> Counts:
    """The same plan with interchangeable workers renamed so that the most tasks stay: an assignment problem."""
    named = counts.copy()
    for kind in np.unique(problem.arrays.kind):
        alike = np.flatnonzero(problem.arrays.kind == kind)
        stay = np.minimum(before[:, alike, None], counts[:, None, alike]).sum(axis=0)
        here, there = linear_sum_assignment(stay, maximize=True)
        named[:, alike[here]] = counts[:, alike[there]]
    return named


def fewest_moves(problem: Problem, before: Counts, counts: Counts, costs: Floats) -> Counts:
    """Among plans that cost no more in any dimension, the one that moves fewest tasks.

    Exact where the plans as cheap as this one can be listed; beyond that the list found in time, and the nearest
    plan that a local search from the present placement leads to.
    """
    equal, _ = list_plans(problem.arrays, costs, most=MOST_EQUAL_PLANS, budget=NODES)
    candidates = [counts, *equal]
    near = _nearest(problem, before, costs)
    if near is not None:
        candidates.append(near)
    named = [name_workers(problem, before, candidate) for candidate in candidates]
    return min(named, key=lambda plan: (moved_tasks(before, plan), plan.tolist()))


def _nearest(problem: Problem, before: Counts, costs: Floats) -> Counts | None:
    """Start from what runs now, repaired to the new parallelism, and change it until it is as cheap."""
    counts = repaired(problem, before)
    excess, _ = settle(problem.arrays, counts, costs, STEPS, 1)
    cheap_enough = excess <= 0.0 and (plan_costs(problem.arrays, counts) <= costs + 1e-9).all()
    return counts if cheap_enough else None


def repaired(problem: Problem, before: Counts) -> Counts:
    """The present placement with surplus tasks taken from the fullest workers and missing ones put on the emptiest."""
    arrays = problem.arrays
    counts = np.maximum(before, arrays.pinned)
    for layer, wanted in enumerate(arrays.tasks):
        while counts[layer].sum() > wanted:
            spare = np.where(counts[layer] > arrays.pinned[layer], counts.sum(axis=0) / arrays.slots, -1.0)
            counts[layer, int(spare.argmax())] -= 1
    # a worker may have lost slots since
    crowded = np.maximum(counts.sum(axis=0) - arrays.slots, 0)
    for worker in np.flatnonzero(crowded):
        for layer in range(len(arrays.tasks)):
            leaving = min(int(crowded[worker]), int(counts[layer, worker] - arrays.pinned[layer, worker]))
            counts[layer, worker] -= leaving
            crowded[worker] -= leaving
    for layer, wanted in enumerate(arrays.tasks):
        while counts[layer].sum() < wanted:
            counts[layer, int(((arrays.slots - counts.sum(axis=0)) / arrays.slots).argmax())] += 1
    return counts
