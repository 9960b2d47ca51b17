"""Which of the unbeaten plans is taken, and the thresholds that go with it (CAPSys 5.2, auto-tuning)."""

from __future__ import annotations

import numpy as np

from sluice.placement.front import Front, steps_needed, thresholds
from sluice.placement.problem import Floats, Problem


def choose(problem: Problem, front: Front, given: Floats) -> int:
    """Within the given limits: most room on the fullest worker, then the lowest sum of costs, then cpu, io, network."""
    return min(front.within(given), key=lambda at: _rank(problem, front.costs[at]))


def tuned_limits(front: Front, given: Floats, chosen: Floats) -> Floats:
    """Start from the lowest cost seen in each dimension alone, relax all together by a tenth at a time.

    The paper stops when any plan is inside; that plan can be far from cheap where one dimension alone can be brought
    near 0. Here relaxing goes on until the chosen plan is inside. A given threshold is kept as it is.
    """
    tightest = np.min([front.costs[at] for at in front.within(given)], axis=0)
    return np.where(np.isfinite(given), given, thresholds(tightest, steps_needed(tightest, chosen)))


def _rank(problem: Problem, costs: Floats) -> tuple[float, ...]:
    """Utilisation counts in whole percent: a difference below is not worth a higher cost elsewhere."""
    full = round(problem.utilisation(costs), 2)
    return (full, *(float(round(value, 9)) for value in (costs.sum(), *costs)))
