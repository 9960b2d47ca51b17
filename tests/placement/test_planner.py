"""Placement inside the loop: loads at the arriving rate, and traffic that leaves a worker."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import SluiceError
from sluice.model import Cluster, Edge, Graph, Observation, Operator, OperatorMetrics, Placement
from sluice.placement import PlacementRequest, placers
from sluice.placement.planner import PlacementPlanner, UnitCosts, expected_input_rates, heavy_shares
from sluice.placement.problem import NET, build, remote_shares
from sluice.placement.request import PlacementResult
from tests.placement.brute import small_requests

GRAPH = Graph(
    operators=(Operator(name="source"), Operator(name="heavy"), Operator(name="light")),
    edges=(Edge(source="source", target="heavy"), Edge(source="source", target="light")),
)


def observed(arrival_rate: float = 200.0) -> Observation:
    return Observation(
        time_s=60,
        interval_s=60,
        operators={
            "source": OperatorMetrics(
                parallelism=1,
                input_rate=100.0,
                output_rate=100.0,
                output_rates={"heavy": 100.0, "light": 50.0},
                arrival_rate=arrival_rate,
                cpu=0.1,
            ),
            "heavy": OperatorMetrics(parallelism=2, input_rate=100.0, cpu=0.9),
            "light": OperatorMetrics(parallelism=2, input_rate=50.0, cpu=0.01),
        },
        edges=GRAPH.topology.edges,
    )


def test_the_arriving_load_flows_through_the_observed_selectivities() -> None:
    assert expected_input_rates(observed()) == {"source": 200.0, "heavy": 200.0, "light": 100.0}


def test_heavy_tasks_are_spread_and_the_sentence_says_so() -> None:
    planner = PlacementPlanner(placer=placers.create("caps"), cluster=Cluster.uniform(4, 4))
    placement, sentence = planner(GRAPH, {"source": 1, "heavy": 4, "light": 7}, observed(), None)
    assert placement.of("heavy") == {"w0": 1, "w1": 1, "w2": 1, "w3": 1}
    assert sentence.startswith("placement: 12 tasks on 4 workers cost cpu")


def test_before_anything_ran_the_profile_decides() -> None:
    units = {"heavy": UnitCosts(cpu=1.0), "light": UnitCosts(cpu=0.01)}
    planner = PlacementPlanner(placer=placers.create("caps"), cluster=Cluster.uniform(2, 4), units=units)
    placement, _ = planner(GRAPH, {"source": 1, "heavy": 2, "light": 3}, None, None)
    assert placement.of("heavy") == {"w0": 1, "w1": 1}


def test_what_runs_well_stays_where_it_is() -> None:
    planner = PlacementPlanner(placer=placers.create("caps"), cluster=Cluster.uniform(4, 4))
    parallelism = {"source": 1, "heavy": 4, "light": 7}
    placement, _ = planner(GRAPH, parallelism, observed(), None)
    again, sentence = planner(GRAPH, parallelism, observed(400.0), placement)
    assert again == placement
    assert "moving 0 of 12 tasks" in sentence


def test_too_few_slots_stop_the_plan_before_it_is_applied() -> None:
    planner = PlacementPlanner(placer=placers.create("evenly"), cluster=Cluster.uniform(1, 4))
    with pytest.raises(SluiceError, match="5 tasks need slots, the cluster has 4"):
        planner(GRAPH, {"source": 1, "heavy": 2, "light": 2}, observed(), None)


@settings(max_examples=40)
@given(small_requests())
def test_remote_shares_are_those_of_the_cost_model(request: PlacementRequest) -> None:
    """Load times remote share, summed over the tasks of the fullest worker, is the network cost."""
    placed = placers.create("evenly", {"seed": 1}).place(request)
    assert placed.placement is not None
    shares = remote_shares(request.graph, placed.placement)
    sent = [
        sum(request.loads[name].net * count * shares[worker][name] for name, count in tasks.items())
        for worker, tasks in placed.placement.tasks.items()
    ]
    problem = build(request)
    heaviest = sorted(
        (request.loads[name].net for name, p in request.parallelism.items() for _ in range(p)), reverse=True
    )
    worst = sum(heaviest[: request.cluster.workers[0].slots])
    expected = problem.costs(problem.counts_of(placed.placement))[NET] * worst
    assert max(sent) == pytest.approx(expected, abs=1e-9)


def test_traffic_of_a_missing_successor_and_of_a_sink_is_none() -> None:
    alone = Placement(tasks={"w0": {"source": 2}, "w1": {"light": 1}})
    assert remote_shares(GRAPH, alone) == {"w0": {"source": 1.0}, "w1": {"light": 0.0}}


def seen_skewed(*shares: float) -> Observation:
    seen = observed()
    heavy = seen.operators["heavy"].model_copy(update={"state_shares": shares})
    return seen.model_copy(update={"operators": {**seen.operators, "heavy": heavy}})


class Spy:
    """Keeps the requests that CAPS gets."""

    def __init__(self) -> None:
        self.requests: list[PlacementRequest] = []

    def place(self, request: PlacementRequest) -> PlacementResult:
        self.requests.append(request)
        return placers.create("caps").place(request)


def test_a_hot_partition_is_a_task_of_its_own_and_the_sentence_says_so() -> None:
    spy = Spy()
    planner = PlacementPlanner(placer=spy, cluster=Cluster.uniform(2, 3))
    # a tenth of the work is no state: a third of it goes to each of three tasks
    placement, sentence = planner(GRAPH, {"source": 1, "heavy": 3, "light": 1}, seen_skewed(0.6, 0.1, 0.1, 0.1), None)
    hot, others = spy.requests[0].groups["heavy"]
    whole = 3 * spy.requests[0].loads["heavy"].cpu
    assert (hot.tasks, others.tasks) == (1, 2)
    assert hot.load.cpu == pytest.approx(whole * (0.6 + 0.1 / 3))
    assert hot.load.cpu + 2 * others.load.cpu == pytest.approx(whole)
    assert others.load.io == spy.requests[0].loads["heavy"].io
    (worker,) = placement.heavy
    assert placement.heavy[worker]["heavy"] == (0.6333,)
    assert placement.tasks[worker]["heavy"] == 1
    assert sentence.endswith("; heavy has one task of 3 with 63% of its work")


@pytest.mark.parametrize(
    ("shares", "tasks", "expected"),
    [
        ((), 3, []),
        ((0.25, 0.25, 0.25, 0.25), 4, []),
        ((0.35, 0.25, 0.2, 0.2), 4, []),
        ((0.9, 0.1), 1, []),
        ((0.45, 0.4, 0.05, 0.05, 0.05), 5, [0.45, 0.4]),
        ((0.05, 0.02, 0.02, 0.01), 4, []),
    ],
)
def test_only_what_clearly_exceeds_an_even_share_of_all_work_is_heavy(
    shares: tuple[float, ...], tasks: int, expected: list[float]
) -> None:
    assert heavy_shares(shares, tasks) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0, 1), st.integers(1, 12))
def test_some_task_is_always_left_for_the_rest(taken: list[float], part: float, tasks: int) -> None:
    total = sum(taken) or 1.0
    heavy = heavy_shares([part * one / total for one in taken], tasks)
    assert len(heavy) < tasks
    assert sum(heavy) <= 1 + 1e-9


@pytest.mark.parametrize("names", [("w0", "w1"), ("w1", "w0")])
def test_a_hot_task_stays_where_it_is_when_placed_again(names: tuple[str, str]) -> None:
    """Either worker has one task of the skewed operator: only the placement's own word says which is the hot one."""
    planner = PlacementPlanner(placer=placers.create("caps"), cluster=Cluster.uniform(2, 2), links=False)
    hot, other = names
    present = Placement(
        tasks={hot: {"heavy": 1, "light": 1}, other: {"heavy": 1, "source": 1}}, heavy={hot: {"heavy": (0.85,)}}
    )
    again, sentence = planner(GRAPH, {"source": 1, "heavy": 2, "light": 1}, seen_skewed(0.85, 0.05, 0.1), present)
    assert again == present
    assert "moving 0 of 4 tasks" in sentence


def test_a_strategy_that_takes_all_tasks_as_alike_places_skewed_operators_too() -> None:
    planner = PlacementPlanner(placer=placers.create("odrp"), cluster=Cluster.uniform(2, 3))
    placement, sentence = planner(GRAPH, {"source": 1, "heavy": 3, "light": 2}, seen_skewed(0.7, 0.1, 0.1, 0.1), None)
    assert placement.parallelism == {"source": 1, "heavy": 3, "light": 2}
    assert not placement.heavy
    assert "of its work" not in sentence
