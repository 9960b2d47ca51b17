"""CAPS, contention-aware placement search (CAPSys, EuroSys 2025, sections 4 and 5.2).

Enumerate if that is quick, else search locally, tune the thresholds, and prove what can be proven.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from sluice.errors import needs_extra
from sluice.model import Cluster, Edge, Graph, Operator
from sluice.placement.enumeration import ParetoSet, list_plans, plan_costs
from sluice.placement.local_search import LocalSearch, reduce_excess, steps_needed, thresholds
from sluice.placement.problem import (
    DIMENSIONS,
    Counts,
    Floats,
    PlacementProblem,
    as_costs,
    build,
    in_words,
    lower_bounds,
    moved_tasks,
)
from sluice.placement.request import PlacementRequest, PlacementResult, placer
from sluice.registry import parameter

SMALL_TASKS, MEDIUM_TASKS = 40, 100
FIRST_NODES, PROOF_NODES = 20_000, 100_000
FIRST_STEPS, MORE_STEPS = 60, 400
MOST_EXCHANGES = 6_000_000
"""Local search ends here whatever the clock says, so that large problems have the same plan on every machine."""
MOST_EQUAL_PLANS, EQUAL_PLAN_NODES, EQUAL_PLAN_STEPS = 400, 20_000, 100


@placer("caps")
@dataclass(frozen=True, kw_only=True)
class Caps:
    """Spread cpu, state access and network load over the workers: a plan no other beats in all three.

    Small problems are enumerated, and the answer is proven. Large ones are searched locally, and the plans under the
    tuned thresholds enumerated as far as the node budget goes: then the answer says what gap is left.
    """

    cpu: float | None = parameter(None, "threshold for the cpu cost, 0 to 1; thresholds left out are tuned")
    io: float | None = parameter(None, "threshold for the state access cost, 0 to 1")
    net: float | None = parameter(None, "threshold for the network cost, 0 to 1")
    first: bool = parameter(False, "take the first plan within the given thresholds instead of the best")
    effort: float = parameter(1.0, "multiplies how many search nodes and exchanges are tried")
    timeout_s: float = parameter(5.0, "return the best plan so far after this time")

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} must be between 0 and 1, got {value}")
        for name in ("effort", "timeout_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.first and self.cpu is self.io is self.net is None:
            raise ValueError("first needs a threshold to keep: set cpu, io or net")

    def place(self, request: PlacementRequest) -> PlacementResult:
        # loading the compiled search is no part of searching
        load_search()
        started_s = time.perf_counter()
        problem = build(request)
        if not problem.fits:
            return PlacementResult.no_room(request)
        given = self._given()
        ends_s = started_s + self.timeout_s
        search = _Search(problem, given, self.effort, lambda: time.perf_counter() > ends_s)
        outcome = search.first_plan() if self.first else search.best_plan()
        if outcome.counts is None:
            return PlacementResult(
                placement=None,
                thresholds=as_costs(given),
                explored=outcome.explored,
                elapsed_s=time.perf_counter() - started_s,
                reason=f"no plan found within the thresholds {in_words(given)}; "
                f"the closest costs {in_words(outcome.costs)}",
            )
        counts = outcome.counts
        if request.present is not None:
            counts = fewest_moves(problem, problem.counts_of(request.present), counts, outcome.costs)
        proof = "nothing better there" if outcome.gap == 0 else f"costs can fall by {outcome.gap:.3f} at most"
        how = f"within the thresholds {in_words(outcome.limits)}, {proof}"
        return problem.result(counts, started_s, how, limits=outcome.limits, explored=outcome.explored, gap=outcome.gap)

    def _given(self) -> Floats:
        return np.array([np.inf if (value := getattr(self, name)) is None else value for name in DIMENSIONS])


@cache
def load_search() -> None:
    """Load (or, the first time on a machine, compile) everything the search calls."""
    graph = Graph(operators=(Operator(name="a"), Operator(name="b")), edges=(Edge(source="a", target="b"),))
    request = PlacementRequest(graph=graph, parallelism={"a": 2, "b": 3}, cluster=Cluster.uniform(3, 3))
    kept = ParetoSet(build(request).arrays)
    search = LocalSearch(kept, 2, lambda: False, np.zeros(3))
    search.run()
    kept.arrays.pinned[0, 0] = 1
    search.attempt(search.start(np.ones(3, bool)), np.full(3, -1.0))
    kept.enumerate_plans(np.full(3, np.inf), 10)


@dataclass(frozen=True)
class SearchOutcome:
    """`counts` is null if no plan keeps the given thresholds; `costs` are then those of the closest."""

    counts: Counts | None
    costs: Floats
    limits: Floats
    explored: int
    gap: float


class _Search:
    """For a plan within the given thresholds; a threshold of infinity is tuned."""

    def __init__(self, problem: PlacementProblem, given: Floats, effort: float, is_over: Callable[[], bool]) -> None:
        self._problem = problem
        self._given = given
        self._effort = effort
        self._is_over = is_over
        self._bounds = lower_bounds(problem.arrays)
        self._kept = ParetoSet(problem.arrays)
        self._local = self._local_search(FIRST_STEPS)
        self._proof_nodes = int(PROOF_NODES * effort)

    def best_plan(self) -> SearchOutcome:
        tasks = self._problem.request.tasks
        proven = tasks <= SMALL_TASKS and self._kept.enumerate_plans(self._given, int(FIRST_NODES * self._effort))
        if not proven:
            self._search_locally()
        if not self._kept.within(self._given):
            return self.first_plan()
        if not proven and not self._is_over():
            proven = self._prove()
        if not proven and tasks > MEDIUM_TASKS:
            self._local_search(MORE_STEPS).lower_sum(self._limits_of_fullest())
        at = choose(self._problem, self._kept, self._given)
        costs = self._kept.costs[at]
        limits = tuned_limits(self._kept, self._given, costs)
        return SearchOutcome(
            self._kept.plans[at], costs, limits, self._kept.explored, 0.0 if proven else self._gap(costs)
        )

    def first_plan(self) -> SearchOutcome:
        """Near an even spread in most cases, else wherever enumeration finds one."""
        counts = self._local.attempt(self._local.start(np.isfinite(self._given)), self._given)
        if counts is None and (self._bounds <= self._given).all():
            self._kept.enumerate_plans(self._given, self._proof_nodes)
            inside = self._kept.within(self._given)
            counts = self._kept.plans[inside[0]] if inside else None
        closest = self._local.nearest(self._given) if counts is None else counts
        costs: Floats = plan_costs(self._problem.arrays, closest)
        return SearchOutcome(counts, costs, self._given, self._kept.explored, self._gap(costs))

    def _local_search(self, steps: int) -> LocalSearch:
        def is_done() -> bool:
            return self._kept.explored > MOST_EXCHANGES * self._effort or self._is_over()

        return LocalSearch(self._kept, int(steps * self._effort) + 1, is_done, self._bounds)

    def _search_locally(self) -> None:
        self._local.run()
        if not self._kept.within(self._given):
            self._local.attempt(self._local.nearest(self._given), self._given)
        if np.isfinite(self._problem.full).any() and self._kept.within(self._given):
            self._lower_utilisation()

    def _lower_utilisation(self) -> None:
        """Bisect for the lowest utilisation of the fullest worker under which a plan is found."""
        low = float((self._problem.arrays.offset / self._problem.full).max())
        for _ in range(6):
            high = self._lowest_utilisation()
            if self._local.is_over() or high - low < 0.01:
                return
            limits = np.minimum(self._problem.limits_at((low + high) / 2), self._given)
            if self._local.attempt(self._local.nearest(limits), limits) is None:
                low = (low + high) / 2

    def _lowest_utilisation(self) -> float:
        return min(self._problem.utilisation(self._kept.costs[at]) for at in self._kept.within(self._given))

    def _prove(self) -> bool:
        """Search for plans with as much room and a lower sum of costs than the best so far, until there are none."""
        limits = self._limits_of_fullest()
        cheapest = min(float(self._kept.costs[at].sum()) for at in self._kept.within(limits))
        return self._kept.enumerate_plans(limits, self._proof_nodes, cheapest)

    def _limits_of_fullest(self) -> Floats:
        """The given limits, and where capacities are known no fuller than the best plan so far, to the percent."""
        return np.minimum(self._given, self._problem.limits_at(self._lowest_utilisation() + 0.005))

    def _gap(self, costs: Floats) -> float:
        return max(float((costs - self._bounds).sum()), 0.0)


def choose(problem: PlacementProblem, kept: ParetoSet, given: Floats) -> int:
    """Within the given limits: most room on the fullest worker, then the lowest sum of costs, then cpu, io, network."""

    def rank(costs: Floats) -> tuple[float, ...]:
        # in whole percent: a smaller difference in utilisation is not worth a higher cost elsewhere
        fullest = round(problem.utilisation(costs), 2)
        return (fullest, *(float(round(value, 9)) for value in (costs.sum(), *costs)))

    return min(kept.within(given), key=lambda at: rank(kept.costs[at]))


def tuned_limits(kept: ParetoSet, given: Floats, chosen: Floats) -> Floats:
    """Start from the lowest cost seen in each dimension alone, relax all together by a tenth at a time.

    The paper stops when any plan is inside; that plan can be far from cheap where one dimension alone can be brought
    near 0. Here relaxing goes on until the chosen plan is inside. A given threshold is kept as it is.
    """
    tightest = np.min([kept.costs[at] for at in kept.within(given)], axis=0)
    return np.where(np.isfinite(given), given, thresholds(tightest, steps_needed(tightest, chosen)))


def fewest_moves(problem: PlacementProblem, before: Counts, counts: Counts, costs: Floats) -> Counts:
    """Among plans that cost no more in any dimension, the one that moves fewest tasks.

    Exact where the plans as cheap as this one can be listed; beyond that the list found in time, and the nearest
    plan that a local search from the present placement leads to.
    """
    equal, _ = list_plans(problem.arrays, costs, most=MOST_EQUAL_PLANS, budget=EQUAL_PLAN_NODES)
    candidates = [counts, *equal]
    near = adapted(problem, before)
    excess, _ = reduce_excess(problem.arrays, near, costs, EQUAL_PLAN_STEPS, 1)
    if excess <= 0.0 and (plan_costs(problem.arrays, near) <= costs + 1e-9).all():
        candidates.append(near)
    named = [name_workers(problem, before, candidate) for candidate in candidates]
    return min(named, key=lambda plan: (moved_tasks(before, plan), plan.tolist()))


def name_workers(problem: PlacementProblem, before: Counts, counts: Counts) -> Counts:
    """The same plan with interchangeable workers renamed so that the most tasks stay: an assignment problem."""
    with needs_extra("the placement strategy 'caps'", "placement"):
        from scipy.optimize import linear_sum_assignment

    named = counts.copy()
    for kind in np.unique(problem.arrays.kind):
        alike = np.flatnonzero(problem.arrays.kind == kind)
        stay = np.minimum(before[:, alike, None], counts[:, None, alike]).sum(axis=0)
        here, there = linear_sum_assignment(stay, maximize=True)
        named[:, alike[here]] = counts[:, alike[there]]
    return named


def adapted(problem: PlacementProblem, before: Counts) -> Counts:
    """The present placement with surplus tasks taken from the fullest workers and missing ones put on the emptiest."""
    arrays = problem.arrays
    counts = np.maximum(before, arrays.pinned)
    for layer, tasks in enumerate(arrays.tasks):
        while counts[layer].sum() > tasks:
            spare = np.where(counts[layer] > arrays.pinned[layer], counts.sum(axis=0) / arrays.slots, -1.0)
            counts[layer, int(spare.argmax())] -= 1
    # a worker may have lost slots since
    crowded = np.maximum(counts.sum(axis=0) - arrays.slots, 0)
    for worker in np.flatnonzero(crowded):
        for layer in range(len(arrays.tasks)):
            leaving = min(int(crowded[worker]), int(counts[layer, worker] - arrays.pinned[layer, worker]))
            counts[layer, worker] -= leaving
            crowded[worker] -= leaving
    for layer, tasks in enumerate(arrays.tasks):
        while counts[layer].sum() < tasks:
            counts[layer, int(((arrays.slots - counts.sum(axis=0)) / arrays.slots).argmax())] += 1
    return counts
