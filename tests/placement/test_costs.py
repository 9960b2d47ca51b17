"""The cost model against the definition, task by task."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.model import Cluster, Edge, Graph, Operator, Worker
from sluice.placement import PlacementRequest, TaskGroup, TaskLoad
from sluice.placement.enumeration import plan_costs
from sluice.placement.problem import Counts, PlacementProblem, build, lower_bounds
from tests.placement.brute import Plan, all_plans, chain, costs, small_requests


def counts_of(problem: PlacementProblem, plan: Plan) -> Counts:
    names = [worker.name for worker in problem.request.cluster.workers]
    order = [names.index(worker.name) for worker in problem.workers]
    return np.array([[plan[operator][worker] for worker in order] for operator in problem.operators], np.int64)


@settings(max_examples=60)
@given(small_requests())
def test_costs_follow_the_equations_and_never_undercut_the_bounds(request: PlacementRequest) -> None:
    problem = build(request)
    bounds = lower_bounds(problem.arrays)
    for plan in all_plans(request)[:200]:
        counts = counts_of(problem, plan)
        expected = costs(request, plan)
        assert problem.costs(counts) == pytest.approx(expected, abs=1e-9)
        assert plan_costs(problem.arrays, counts) == pytest.approx(expected, abs=1e-9)
        assert (bounds <= np.array(expected) + 1e-9).all()


def test_a_task_splits_its_traffic_over_all_successors() -> None:
    """One task sends to two tasks here and two there: half of its four links are remote."""
    request = PlacementRequest(
        graph=Graph(
            operators=(Operator(name="a"), Operator(name="b"), Operator(name="c")),
            edges=(Edge(source="a", target="b"), Edge(source="a", target="c", kind="rebalance")),
        ),
        parallelism={"a": 1, "b": 2, "c": 2},
        cluster=Cluster.uniform(2, 4),
        loads={"a": TaskLoad(net=8.0)},
    )
    problem = build(request)
    assert problem.costs(counts_of(problem, {"a": (1, 0), "b": (2, 0), "c": (0, 2)}))[2] == pytest.approx(0.5)
    assert problem.costs(counts_of(problem, {"a": (1, 0), "b": (1, 1), "c": (2, 0)}))[2] == pytest.approx(0.25)


def test_a_forward_edge_is_local_where_the_pair_shares_a_worker() -> None:
    problem = build(chain(4, 4, workers=2, slots=8, kind="forward"))
    together = problem.costs(counts_of(problem, {"a": (2, 2), "b": (2, 2)}))
    apart = problem.costs(counts_of(problem, {"a": (4, 0), "b": (0, 4)}))
    assert together[2] == 0
    assert apart[2] > together[2]


def test_larger_workers_carry_more_before_they_cost_as_much() -> None:
    small, large = Worker(name="s", slots=2, cpu=2.0), Worker(name="l", slots=4, cpu=6.0)
    request = chain(4, workers=1, slots=4).model_copy(update={"cluster": Cluster(workers=(small, large))})
    problem = build(request)
    shared_by_size = problem.costs(counts_of(problem, {"a": (1, 3)}))
    shared_by_number = problem.costs(counts_of(problem, {"a": (2, 2)}))
    assert shared_by_size[0] == pytest.approx(0)
    assert shared_by_number[0] > 0.3


def test_groups_of_a_skewed_operator_weigh_what_they_weigh() -> None:
    hot, cold = TaskGroup(tasks=2, load=TaskLoad(cpu=5.0)), TaskGroup(tasks=4, load=TaskLoad(cpu=1.0))
    request = chain(6, workers=2, slots=4).model_copy(update={"loads": {}, "groups": {"a": (hot, cold)}})
    problem = build(request)
    assert problem.operators == ("a", "a")
    assert problem.costs(np.array([[1, 1], [2, 2]]))[0] == pytest.approx(0)
    assert problem.costs(np.array([[2, 0], [1, 3]]))[0] == pytest.approx((11 - 7) / (12 - 7))
    assert problem.placement_of(np.array([[1, 1], [2, 2]])).of("a") == {"w0": 3, "w1": 3}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=4), st.floats(1.01, 100.0))
def test_a_placement_tells_heavy_tasks_from_the_others(plan: list[tuple[int, int]], weight: float) -> None:
    tasks = [sum(column[group] for column in plan) for group in (0, 1)]
    if not all(tasks):
        return
    groups = tuple(
        TaskGroup(tasks=count, load=TaskLoad(cpu=cpu)) for count, cpu in zip(tasks, (weight, 1.0), strict=True)
    )
    request = chain(sum(tasks), workers=len(plan), slots=6).model_copy(update={"loads": {}, "groups": {"a": groups}})
    problem = build(request)
    if not problem.arrays.load[0].any():
        return  # every plan costs the same
    hot_first = sorted(range(2), key=lambda layer: -problem.arrays.load[0, layer])
    counts = np.zeros_like(problem.arrays.pinned)
    counts[hot_first] = np.array(plan).T
    placement = problem.placement_of(counts)
    assert len(placement.heavy_of("a")) == tasks[0]
    assert (problem.counts_of(placement) == counts).all()
