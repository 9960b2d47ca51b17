"""Requests fail early, quoting what is wrong."""

import pytest

from sluice.errors import BadInputError
from sluice.model import Cluster, Graph, Observation, Operator, OperatorMetrics, Placement
from sluice.placement import PlacementRequest
from sluice.placement.planner import loads_at, observed_unit_costs

GRAPH = Graph(operators=(Operator(name="a"), Operator(name="b")))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"parallelism": {"a": 1}}, "parallelism of 'b' is missing"),
        ({"parallelism": {"a": 1, "b": 1, "c": 1}}, "names 'c', which is no operator"),
        ({"groups": {"a": [{"tasks": 2, "load": {}}]}}, "groups of 'a' have 2 tasks, its parallelism is 1"),
        ({"pinned": {"tasks": {"w9": {"a": 1}}}}, "'w9', which is no worker"),
        ({"pinned": {"tasks": {"w0": {"b": 3}}}}, "3 tasks are pinned to 'w0' with 2 slots"),
        ({"pinned": {"tasks": {"w0": {"a": 2}}}}, "2 tasks of 'a' are pinned, it has 1"),
    ],
)
def test_a_request_that_does_not_fit_together_says_what_is_wrong(change: dict[str, object], complaint: str) -> None:
    fine = {"graph": GRAPH, "parallelism": {"a": 1, "b": 2}, "cluster": Cluster.uniform(2, 2)}
    assert PlacementRequest.parse(fine, "request").tasks == 3
    with pytest.raises(BadInputError, match=complaint):
        PlacementRequest.parse(fine | change, "request")


def test_pinned_tasks_that_fit_are_accepted() -> None:
    pinned = Placement(tasks={"w0": {"a": 1, "b": 1}})
    request = PlacementRequest(graph=GRAPH, parallelism={"a": 1, "b": 2}, cluster=Cluster.uniform(2, 2), pinned=pinned)
    assert request.pinned == pinned


def test_observed_loads_scale_with_the_rate_and_are_shared_by_the_tasks() -> None:
    seen = OperatorMetrics(parallelism=2, input_rate=100.0, cpu=0.5, io_rate=1000.0, net_rate=None)
    observation = Observation(time_s=10, interval_s=10, operators={"a": seen, "b": OperatorMetrics(parallelism=1)})
    units = observed_unit_costs(observation)
    assert set(units) == {"a"}
    load = loads_at(units, {"a": 400.0}, {"a": 8})["a"]
    assert (load.cpu, load.io, load.net) == (0.5, 500.0, 0.0)
