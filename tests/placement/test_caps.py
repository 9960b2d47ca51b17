"""CAPS finds what exhaustive search finds, keeps what must stay, and explains itself."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from sluice.errors import BadInputError
from sluice.model import Cluster, Placement, Worker
from sluice.placement import PlacementRequest, PlacementResult, TaskGroup, TaskLoad, placers
from sluice.placement.caps import PROOF_NODES, Caps
from sluice.placement.enumeration import ParetoSet
from sluice.placement.local_search import LocalSearch
from sluice.placement.problem import build
from tests.placement.brute import all_plans, chain, costs, mixed_cluster, pareto, small_requests


def vector(placed: PlacementResult) -> tuple[float, float, float]:
    assert placed.costs is not None
    return (placed.costs.cpu, placed.costs.io, placed.costs.net)


@settings(max_examples=300)
@given(small_requests(most_tasks=8))
def test_pruned_search_returns_the_pareto_costs_of_exhaustive_search(request: PlacementRequest) -> None:
    expected = pareto([costs(request, plan) for plan in all_plans(request)])
    kept = ParetoSet(build(request).arrays)
    assert kept.enumerate_plans(np.full(3, np.inf), 10**9)
    found = np.array(sorted(tuple(np.round(vector, 7)) for vector in kept.costs))
    assert found == pytest.approx(expected, abs=1e-6)
    chosen = np.array(vector(Caps().place(request)))
    assert np.abs(expected - chosen).max(axis=1).min() < 1e-6


@settings(max_examples=40)
@given(small_requests(most_tasks=8))
def test_thresholds_keep_exactly_the_unbeaten_plans_below_them(request: PlacementRequest) -> None:
    vectors = [costs(request, plan) for plan in all_plans(request)]
    limits = np.median(np.array(vectors), axis=0)
    kept = ParetoSet(build(request).arrays)
    assert kept.enumerate_plans(limits, 10**9)
    inside = [found for found in vectors if (np.array(found) <= limits + 1e-9).all()]
    if inside:
        found = np.array(sorted(tuple(np.round(vector, 7)) for vector in kept.costs))
        assert found == pytest.approx(pareto(inside), abs=1e-6)
    else:
        assert not kept.costs


@pytest.mark.parametrize("slots", [8, 12])
def test_the_local_search_reaches_what_enumeration_proves(slots: int) -> None:
    """Four operators on four workers: large enough to be hard, small enough to be certain."""
    problem = build(chain(slots // 2, slots, slots // 2, slots, workers=4, slots=slots))
    exact, near = ParetoSet(problem.arrays), ParetoSet(problem.arrays)
    assert exact.enumerate_plans(np.full(3, np.inf), 10**8)
    LocalSearch(near, 100, lambda: False, np.zeros(3)).run()
    assert np.min([found.sum() for found in near.costs]) <= np.min([found.sum() for found in exact.costs]) + 0.01


def test_the_same_request_gives_the_same_plan() -> None:
    request = chain(40, 60, 20, workers=8, slots=16)
    first, second = Caps().place(request), Caps().place(request)
    assert first.placement == second.placement
    assert first.explored == second.explored


def test_thresholds_are_the_tightest_relaxed_together_by_a_tenth_at_a_time() -> None:
    placed = Caps().place(chain(2, 3, 4, workers=3, slots=4))
    assert placed.thresholds is not None
    assert all(
        cost <= threshold + 1e-9
        for cost, threshold in zip(vector(placed), placed.thresholds.to_data().values(), strict=True)
    )
    assert placed.gap == 0


def test_given_thresholds_are_kept_or_refused() -> None:
    request = chain(4, 4, workers=2, slots=6)
    kept = Caps(cpu=0.2, first=True).place(request)
    assert kept.costs is not None
    assert kept.costs.cpu <= 0.2
    refused = Caps(cpu=0.0, io=0.0, net=0.0).place(request)
    assert not refused.feasible
    assert "no plan found within the thresholds" in refused.reason


def test_too_few_slots_are_said_not_guessed() -> None:
    placed = Caps().place(chain(5, 5, workers=2, slots=4))
    assert not placed.feasible
    assert placed.reason == "10 tasks need slots, the cluster has 8"


@settings(max_examples=40)
@given(small_requests(most_tasks=8))
def test_the_chosen_plan_has_the_lowest_sum_of_costs(request: PlacementRequest) -> None:
    placed = Caps().place(request)
    lowest = min(sum(costs(request, plan)) for plan in all_plans(request))
    assert sum(vector(placed)) == pytest.approx(lowest, abs=1e-6)
    assert placed.gap == 0


def test_looking_only_for_cheaper_plans_finds_the_cheapest() -> None:
    problem = build(chain(4, 6, 5, 3, workers=4, slots=5))
    whole, cheaper = ParetoSet(problem.arrays), ParetoSet(problem.arrays)
    assert whole.enumerate_plans(np.full(3, np.inf), 10**8)
    assert cheaper.enumerate_plans(np.full(3, np.inf), 10**8, cheapest=3.0)
    assert min(found.sum() for found in cheaper.costs) == pytest.approx(min(found.sum() for found in whole.costs))
    assert cheaper.explored < whole.explored


def test_a_timeout_returns_the_best_plan_so_far_and_its_gap() -> None:
    placed = Caps(timeout_s=1e-9).place(chain(100, 200, 150, workers=16, slots=32))
    assert placed.placement is not None
    assert placed.placement.parallelism == {"a": 100, "b": 200, "c": 150}
    assert placed.gap is not None
    assert "can fall by" in placed.reason


def test_pinned_tasks_stay_and_the_rest_gives_way() -> None:
    pinned = Placement(tasks={"w1": {"c": 2}, "w0": {"a": 1}})
    request = chain(2, 3, 4, workers=3, slots=4).model_copy(update={"pinned": pinned})
    placed = Caps().place(request)
    assert placed.placement is not None
    assert placed.placement.tasks["w1"]["c"] >= 2
    assert placed.placement.tasks["w0"]["a"] >= 1
    best = pareto([costs(request, plan) for plan in all_plans(request)])
    assert np.abs(best - np.array(vector(placed))).max(axis=1).min() < 1e-6


def test_workers_of_different_sizes_get_their_share() -> None:
    request = chain(8, workers=1, slots=8).model_copy(update={"cluster": mixed_cluster()})
    placed = Caps().place(request)
    assert placed.placement is not None
    assert placed.placement.of("a") == {"s1": 2, "s2": 2, "l1": 4}


def test_hot_tasks_of_a_skewed_operator_are_kept_apart() -> None:
    hot, cold = TaskGroup(tasks=3, load=TaskLoad(cpu=9.0)), TaskGroup(tasks=6, load=TaskLoad(cpu=1.0))
    request = chain(9, workers=3, slots=4).model_copy(update={"loads": {}, "groups": {"a": (hot, cold)}})
    placed = Caps().place(request)
    assert placed.costs is not None
    assert placed.costs.cpu == pytest.approx(0)


@settings(max_examples=40)
@given(small_requests(most_tasks=7))
def test_equal_plans_are_decided_by_the_fewest_moves(request: PlacementRequest) -> None:
    """Against every plan of the same cost under every naming of the workers."""
    present = placers.create("evenly", {"seed": 3}).place(request).placement
    assert present is not None
    placed = Caps().place(request.model_copy(update={"present": present}))
    names = [worker.name for worker in request.cluster.workers]
    chosen = np.array(vector(placed)) + 1e-9

    def moves(columns: tuple[int, ...], plan: dict[str, tuple[int, ...]]) -> int:
        return sum(
            row[column] - min(row[column], present.tasks[name].get(operator, 0))
            for operator, row in plan.items()
            for name, column in zip(names, columns, strict=True)
        )

    equal = [plan for plan in all_plans(request) if (np.array(costs(request, plan)) <= chosen).all()]
    fewest = min(moves(columns, plan) for plan in equal for columns in itertools.permutations(range(len(names))))
    assert placed.moved == fewest


def test_a_good_placement_is_left_alone() -> None:
    request = chain(6, 12, 6, workers=4, slots=8)
    placed = Caps().place(request)
    again = Caps().place(request.model_copy(update={"present": placed.placement}))
    assert again.moved == 0
    assert again.placement == placed.placement


def test_known_capacities_come_first() -> None:
    """Spreading the load evenly would overload the network of every worker; keeping links local overloads none."""
    request = chain(4, 4, workers=2, slots=8)
    free = Caps().place(request)
    tight = [Worker(name=f"w{n}", slots=8, cpu=100.0, io=100.0, net=0.5) for n in range(2)]
    bound = Caps().place(request.model_copy(update={"cluster": Cluster(workers=tuple(tight))}))
    assert free.costs is not None
    assert bound.costs is not None
    assert free.costs.net > 0
    assert bound.costs.net == 0


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"cpu": 1.5}, "cpu must be between 0 and 1, got 1.5"),
        ({"timeout_s": 0}, "timeout_s must be above 0"),
        ({"first": True}, "first needs a threshold"),
    ],
)
def test_parameters_fail_early(setting: dict[str, object], complaint: str) -> None:
    with pytest.raises(BadInputError, match=complaint):
        placers.create("caps", setting)


def test_the_budget_is_counted_in_nodes_so_that_machines_agree() -> None:
    problem = build(chain(30, 40, 30, workers=8, slots=16))
    kept = ParetoSet(problem.arrays)
    assert not kept.enumerate_plans(np.full(3, np.inf), 1000)
    assert kept.explored == 1000 < PROOF_NODES
