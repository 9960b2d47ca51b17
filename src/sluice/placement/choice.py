"""Which of the unbeaten plans is taken, and the thresholds that go with it (CAPSys 5.2, auto-tuning)."""

from __future__ import annotations

import numpy as np

from sluice.placement.columns import ROUNDING
from sluice.placement.front import Front, steps_needed, thresholds
from sluice.placement.problem import Counts, Floats


def tuned_limits(found: list[Floats], full: Floats) -> Floats:
    """Start from the lowest cost seen in each dimension alone, relax all together until a plan keeps them.

    Where capacities are known, relaxing goes on until a plan is inside that overloads workers as little as any.
    """
    tightest = np.min(found, axis=0)
    overloads = [_overload(costs, full) for costs in found]
    least = min(overloads) + ROUNDING
    steps = min(
        steps_needed(tightest, costs) for costs, overload in zip(found, overloads, strict=True) if overload <= least
    )
    return thresholds(tightest, steps)


def choose(front: Front, limits: Floats, full: Floats) -> tuple[Floats, Counts]:
    """Within the limits: least overload, then the lowest sum of costs, then the lowest cpu, io and network cost."""
    inside = front.within(limits)
    at = min(inside, key=lambda at: _rank(front.costs[at], full))
    return front.costs[at], front.plans[at]


def _rank(costs: Floats, full: Floats) -> tuple[float, ...]:
    return tuple(float(round(value, 9)) for value in (_overload(costs, full), costs.sum(), *costs))


def _overload(costs: Floats, full: Floats) -> float:
    """By how much the heaviest worker exceeds its capacities, in units of cost."""
    return float(np.maximum(costs - full, 0.0).max())
