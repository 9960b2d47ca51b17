"""Which of the unbeaten plans is taken, and the thresholds that go with it (CAPSys 5.2, auto-tuning)."""

from __future__ import annotations

import numpy as np

from sluice.placement.front import Front, steps_needed, thresholds
from sluice.placement.problem import Counts, Floats, Problem


def tuned_limits(problem: Problem, found: list[Floats]) -> Floats:
    """Start from the lowest cost seen in each dimension alone, relax all together until a plan keeps them.

    Where capacities are known, relaxing goes on until the plan is inside that leaves most room on the fullest worker.
    """
    tightest = np.min(found, axis=0)
    fullest = [_fullest(problem, costs) for costs in found]
    roomy = [costs for costs, full in zip(found, fullest, strict=True) if full == min(fullest)]
    return thresholds(tightest, min(steps_needed(tightest, costs) for costs in roomy))


def choose(problem: Problem, front: Front, limits: Floats) -> tuple[Floats, Counts]:
    """Within the limits: most room on the fullest worker, then the lowest sum of costs, then cpu, io and network."""
    at = min(front.within(limits), key=lambda at: _rank(problem, front.costs[at]))
    return front.costs[at], front.plans[at]


def _rank(problem: Problem, costs: Floats) -> tuple[float, ...]:
    return (_fullest(problem, costs), *(float(round(value, 9)) for value in (costs.sum(), *costs)))


def _fullest(problem: Problem, costs: Floats) -> float:
    """Utilisation in whole percent: a difference below is not worth a higher cost elsewhere."""
    return round(problem.utilisation(costs), 2)
