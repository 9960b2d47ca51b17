"""Placement inside the loop: loads at the arriving rate, and traffic that leaves a worker."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from sluice.errors import SluiceError
from sluice.model import Cluster, Edge, Graph, Observation, Operator, OperatorMetrics, Placement
from sluice.placement import PlacementRequest, placers
from sluice.placement.planner import PlacementPlanner, UnitCosts, expected_input_rates
from sluice.placement.problem import NET, build, remote_shares
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
