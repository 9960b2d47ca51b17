"""How CAPS looks for its plan: enumerate if that is quick, else approach, tune, and prove what can be proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from sluice.model import Cluster, Edge, Graph, Operator
from sluice.placement.base import PlacementRequest
from sluice.placement.bounds import lower_bounds
from sluice.placement.choice import choose, tuned_limits
from sluice.placement.columns import plan_costs
from sluice.placement.front import Approach, Front, enumerate_front
from sluice.placement.problem import Counts, Floats, Problem, build

SMALL_TASKS, MEDIUM_TASKS = 40, 100
FIRST_NODES, PROOF_NODES = 20_000, 100_000
QUICK_STEPS, PATIENT_STEPS = 60, 400
MOST_EXCHANGES = 6_000_000
"""Local search ends here whatever the clock says, so that large problems have the same plan on every machine."""


@dataclass(frozen=True)
class Found:
    """`counts` is null if no plan keeps the given thresholds; `costs` are then those of the closest."""

    counts: Counts | None
    costs: Floats
    limits: Floats
    explored: int
    gap: float


@cache
def warm_up() -> None:
    """Load (or, the first time on a machine, compile) everything the search calls."""
    graph = Graph(operators=(Operator(name="a"), Operator(name="b")), edges=(Edge(source="a", target="b"),))
    request = PlacementRequest(graph=graph, parallelism={"a": 2, "b": 3}, cluster=Cluster.uniform(3, 3))
    front = Front(build(request).arrays)
    Approach(front, 2, lambda: False, np.zeros(3)).run()
    front.arrays.pinned[0, 0] = 1
    quick = Approach(front, 2, lambda: False, np.zeros(3))
    quick.attempt(front.start(np.ones(3, bool)), np.full(3, -1.0))
    enumerate_front(front, np.full(3, np.inf), 10)


def hunt(problem: Problem, given: Floats, *, first: bool, effort: float, is_over: Callable[[], bool]) -> Found:
    """A plan within the given thresholds (infinite where they are to be tuned): the first one, or the best."""
    front = Front(problem.arrays)
    bounds = lower_bounds(problem.arrays)

    def is_done() -> bool:
        return front.explored > MOST_EXCHANGES * effort or is_over()

    quick = Approach(front, int(QUICK_STEPS * effort) + 1, is_done, bounds)
    if first:
        return _first(front, quick, given, int(PROOF_NODES * effort))
    proven = problem.request.tasks <= SMALL_TASKS and enumerate_front(front, given, int(FIRST_NODES * effort))
    if not proven:
        _approach(problem, quick, given)
    if not front.within(given):
        return _first(front, quick, given, int(PROOF_NODES * effort))
    if not proven and not is_over():
        proven = _prove(problem, front, given, int(PROOF_NODES * effort))
    if not proven and problem.request.tasks > MEDIUM_TASKS:
        patient = Approach(front, int(PATIENT_STEPS * effort) + 1, is_done, bounds)
        patient.trade_down(_as_roomy(problem, front, given))
    at = choose(problem, front, given)
    costs, counts = front.costs[at], front.plans[at]
    limits = tuned_limits(front, given, costs)
    return Found(counts, costs, limits, front.explored, 0.0 if proven else _gap(costs, bounds))


def _prove(problem: Problem, front: Front, given: Floats, budget: int) -> bool:
    """Look for anything with as much room and a lower sum of costs than the best so far, until there is nothing."""
    roomy = _as_roomy(problem, front, given)
    return enumerate_front(front, roomy, budget, min(float(front.costs[at].sum()) for at in front.within(roomy)))


def _as_roomy(problem: Problem, front: Front, given: Floats) -> Floats:
    """The given limits, and where capacities are known no fuller than the best plan so far, to the percent."""
    fullest = min(problem.utilisation(front.costs[at]) for at in front.within(given))
    return np.minimum(given, problem.limits_at(fullest + 0.005))


def _approach(problem: Problem, quick: Approach, given: Floats) -> None:
    quick.run()
    if not quick.front.within(given):
        quick.attempt(quick.nearest(given), given)
    if np.isfinite(problem.full).any() and quick.front.within(given):
        _make_room(problem, quick, given)


def _make_room(problem: Problem, quick: Approach, given: Floats) -> None:
    """Bisect for the lowest utilisation of the fullest worker under which a plan is found."""
    low = float((problem.arrays.offset / problem.full).max())
    for _ in range(6):
        high = min(problem.utilisation(quick.front.costs[at]) for at in quick.front.within(given))
        if quick.is_over() or high - low < 0.01:
            return
        wish = np.minimum(problem.limits_at((low + high) / 2), given)
        if quick.attempt(quick.nearest(wish), wish) is None:
            low = (low + high) / 2


def _first(front: Front, quick: Approach, given: Floats, budget: int) -> Found:
    """The first plan within the thresholds: near an even spread in most cases, else wherever enumeration finds one."""
    found = quick.attempt(front.start(np.isfinite(given)), given)
    if found is None and (quick.bounds <= given).all():
        enumerate_front(front, given, budget)
        inside = front.within(given)
        found = front.plans[inside[0]] if inside else None
    if found is None:
        closest: Floats = plan_costs(front.arrays, quick.nearest(given))
        return Found(None, closest, given, front.explored, _gap(closest, quick.bounds))
    costs: Floats = plan_costs(front.arrays, found)
    return Found(found, costs, given, front.explored, _gap(costs, quick.bounds))


def _gap(costs: Floats, bounds: Floats) -> float:
    return max(float((costs - bounds).sum()), 0.0)
