"""Plans that no other plan beats in all dimensions: enumerated where that is affordable, else approached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sluice.placement.bounds import lower_bounds
from sluice.placement.columns import ROUNDING, plan_costs
from sluice.placement.descent import settle, spread_out
from sluice.placement.enumeration import search
from sluice.placement.problem import Arrays, Counts, Floats

NO_LIMITS = np.full(3, np.inf)
MOST_PLANS = 256
RELAXATION = 1.1
TIGHTEST = 0.01
"""A threshold of 0 cannot be relaxed by a factor; relaxing starts here."""


@dataclass
class Front:
    """The plans kept so far, with their costs and what finding them took."""

    arrays: Arrays
    costs: list[Floats] = field(default_factory=list)
    plans: list[Counts] = field(default_factory=list)
    explored: int = 0

    def add(self, counts: Counts) -> Floats:
        """Keep the plan unless one like it is here; plans it beats go."""
        costs: Floats = plan_costs(self.arrays, counts)
        if not any((kept <= costs + ROUNDING).all() for kept in self.costs):
            stay = [at for at, kept in enumerate(self.costs) if not (costs <= kept + ROUNDING).all()]
            self.costs = [*(self.costs[at] for at in stay), costs]
            self.plans = [*(self.plans[at] for at in stay), counts.copy()]
        return costs

    def start(self, wanted: npt.NDArray[np.bool_]) -> Counts:
        """A plan that spreads the wanted dimensions, kept like any other."""
        counts: Counts = spread_out(self.arrays, wanted)
        self.explored += int(self.arrays.tasks.sum()) * len(self.arrays.slots)
        self.add(counts)
        return counts

    def within(self, limits: Floats) -> list[int]:
        return [at for at, costs in enumerate(self.costs) if (costs <= limits + ROUNDING).all()]


def enumerate_front(front: Front, limits: Floats, budget: int, cheapest: float = np.inf) -> bool:
    """Add every unbeaten plan within the limits; true if the budget of search nodes sufficed to see them all.

    With `cheapest` only plans whose costs sum up to less are looked for, which goes much faster.
    """
    arrays = front.arrays
    costs = np.zeros((MOST_PLANS, 3))
    plans = np.zeros((MOST_PLANS, *arrays.pinned.shape), np.int64)
    given = min(len(front.costs), MOST_PLANS)
    if given:
        costs[:given], plans[:given] = front.costs[:given], front.plans[:given]
    bounds = lower_bounds(arrays)
    size, nodes, finished = search(arrays, limits, bounds, cheapest, budget, costs, plans, given, False)
    front.costs, front.plans = [*costs[:size].copy()], [*plans[:size].copy()]
    front.explored += int(nodes)
    return bool(finished)


def list_plans(arrays: Arrays, limits: Floats, *, most: int, budget: int) -> tuple[list[Counts], bool]:
    """All plans within the limits, and whether that is all of them."""
    plans = np.zeros((most, *arrays.pinned.shape), np.int64)
    found, _, finished = search(arrays, limits, np.zeros(3), np.inf, budget, np.zeros((most, 3)), plans, 0, True)
    return [*plans[:found]], bool(finished)


def thresholds(tightest: Floats, steps: int) -> Floats:
    """All relaxed together, `steps` times (CAPSys 5.2)."""
    return np.asarray(np.maximum(tightest, TIGHTEST) * RELAXATION**steps)


def steps_needed(tightest: Floats, costs: Floats) -> int:
    """How often the thresholds must be relaxed until these costs keep them."""
    ratio = max(float((costs / np.maximum(tightest, TIGHTEST)).max()), 1.0)
    return int(np.ceil(np.log(ratio) / np.log(RELAXATION) - ROUNDING))


@dataclass(frozen=True)
class Approach:
    """The search for clusters too large to enumerate: settle under limits, lower them, keep what is found."""

    front: Front
    steps: int
    is_over: Callable[[], bool]
    bounds: Floats

    def run(self) -> None:
        for wanted in ((True, True, True), (True, True, False)):
            self.front.start(np.array(wanted))
        for d in range(3):
            self._lower_one(d)
        self._relax_together()
        self.trade_down(NO_LIMITS)

    def attempt(self, start: Counts, limits: Floats) -> Counts | None:
        """A plan within the limits near the start, if the local search finds one; what it saw is kept either way."""
        counts = start.copy()
        excess, priced = settle(self.front.arrays, counts, limits, self.steps, 1)
        self.front.explored += int(priced)
        self.front.add(counts)
        return counts if excess <= 0.0 else None

    def nearest(self, limits: Floats) -> Counts:
        """The plan kept that exceeds these limits least."""
        excess = [float(np.maximum(costs - limits, 0.0).sum()) for costs in self.front.costs]
        return self.front.plans[int(np.argmin(excess))]

    def trade_down(self, limits: Floats) -> None:
        """Within the limits, lower the sum of costs: less of one for at most half of that more of each other."""
        stride = 0.08
        while stride > 0.002 and not self.is_over():
            at = min(self.front.within(limits), key=lambda at: float(self.front.costs[at].sum()))
            plan, costs = self.front.plans[at], self.front.costs[at]
            if not any(self._stride(plan, costs, d, stride, limits) for d in (2, 0, 1)):
                stride /= 2.5

    def _stride(self, plan: Counts, costs: Floats, d: int, stride: float, limits: Floats) -> bool:
        if costs[d] - stride < self.bounds[d]:
            return False
        wish = np.minimum(costs + 0.45 * stride, limits)
        wish[d] = costs[d] - stride
        return self.attempt(plan, wish) is not None

    def _lower_one(self, d: int) -> None:
        """Try the bound itself, then halve the distance to it, the other dimensions left free."""
        alone = np.zeros(3, bool)
        alone[d] = True
        self.front.start(alone)
        target = float(self.bounds[d])
        for _ in range(6):
            at = min(range(len(self.front.costs)), key=lambda at: float(self.front.costs[at][d]))
            lowest = float(self.front.costs[at][d])
            if self.is_over() or lowest - target < 0.002:
                return
            limits = NO_LIMITS.copy()
            limits[d] = target
            if self.attempt(self.front.plans[at], limits) is None:
                target = (target + float(min(costs[d] for costs in self.front.costs))) / 2

    def _relax_together(self) -> None:
        """The fewest relaxations of the tightest thresholds under which a plan is found, by bisection."""
        tightest = np.min(self.front.costs, axis=0)
        low, high = 0, min(steps_needed(tightest, costs) for costs in self.front.costs)
        while low < high and not self.is_over():
            middle = (low + high) // 2
            limits = thresholds(tightest, middle)
            found = self.attempt(self.nearest(limits), limits)
            low, high = (low, middle) if found is not None else (middle + 1, high)
