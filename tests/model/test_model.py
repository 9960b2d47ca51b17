"""What the model refuses, and that everything survives a trip through JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import BadInputError
from sluice.model import (
    Cluster,
    Edge,
    Graph,
    Observation,
    Operator,
    Placement,
    Recommendation,
    Target,
    Topology,
    observation_schema,
    unknown_metrics,
)


def observation(**changes):
    data = {
        "time_s": 60,
        "interval_s": 15,
        "operators": {"a": {"parallelism": 2, "input_rate": 10.0}, "b": {"parallelism": 1}},
        "edges": [["a", "b"]],
    }
    return {**data, **changes}


@pytest.mark.parametrize(
    ("edges", "names", "message"),
    [
        ([("a", "b"), ("b", "a")], "ab", "cycle: a -> b -> a|cycle: b -> a -> b"),
        ([("a", "x")], "ab", "'a' -> 'x' names 'x', which is no operator; operators: a, b"),
        ([("a", "b"), ("a", "b")], "ab", "'a' -> 'b' is there twice"),
        ([("a", "a")], "a", "cycle"),
        ([], "aa", "must differ, got 'a' twice"),
        ([], "", "at least one operator"),
    ],
)
def test_a_shape_that_is_no_job_is_refused(edges, names, message):
    with pytest.raises(ValueError, match=message):
        Topology.of(names, edges)


def test_order_puts_everyone_after_what_feeds_it():
    topology = Topology.of("dcba", [("a", "c"), ("b", "c"), ("c", "d")])
    assert topology.order.index("c") > topology.order.index("a")
    assert topology.order[-1] == "d"
    assert topology.sources == ("b", "a")
    assert topology.sinks == ("d",)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"parallelism": 1, "input_rate": -1}, r"operators\.a\.input_rate: .*greater than or equal to 0, got -1"),
        ({"parallelism": 1, "lag": math.nan}, r"operators\.a\.lag: .*finite number, got nan"),
        ({"parallelism": 0}, r"operators\.a\.parallelism: .*greater than or equal to 1, got 0"),
        ({"parallelism": 1, "busy": 1.5}, r"operators\.a\.busy: .*less than or equal to 1, got 1.5"),
        ({}, r"operators\.a\.parallelism: Field required"),
    ],
)
def test_a_metric_that_cannot_be_is_named_with_its_value(metrics, message):
    with pytest.raises(BadInputError, match=message):
        Observation.parse(observation(operators={"a": metrics}, edges=[]), "it")


def test_missing_metrics_are_unknown_and_unknown_ones_are_reported():
    seen = Observation.parse(observation(), "it")
    assert seen.operators["b"].input_rate is None
    assert unknown_metrics(observation(operators={"a": {"parallelism": 1, "bussy": 1}})) == ("bussy",)


def test_operator_bounds_must_be_in_order():
    with pytest.raises(ValueError, match=r"max_parallelism must be at least min_parallelism \(4\), got 2"):
        Operator(name="a", min_parallelism=4, max_parallelism=2)


finite = st.floats(0, 1e9)
metrics = st.fixed_dictionaries(
    {"parallelism": st.integers(1, 100)},
    optional={
        "input_rate": finite,
        "busy": st.floats(0, 1),
        "lag": finite,
        "lag_rate": st.floats(-1e6, 1e6),
        "output_rates": st.dictionaries(st.sampled_from("xyz"), finite),
    },
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), metrics, min_size=1, max_size=5))
def test_observations_survive_json(operators):
    seen = Observation.parse(observation(operators=operators, edges=[]), "it")
    assert Observation.model_validate_json(seen.to_json()) == seen
    assert Observation.parse(json.loads(seen.to_json()), "it") == seen


def test_the_other_values_survive_json():
    values = [
        Graph(operators=(Operator(name="a"), Operator(name="b")), edges=(Edge(source="a", target="b", share=0.5),)),
        Recommendation(parallelism={"a": 2}, reason="because 2", measures={"regret": 0.5}),
        Target(parallelism={"a": 2}, placement=Placement(tasks={"w0": {"a": 2}}, heavy={"w0": {"a": (0.7,)}})),
        Cluster.uniform(2, 4, cpu=1.0),
    ]
    for value in values:
        assert type(value).model_validate_json(value.to_json()) == value


def test_an_edge_is_written_with_from_and_to():
    assert Edge(source="a", target="b").to_data() == {"from": "a", "to": "b", "kind": "hash", "share": 1.0}


def test_values_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Recommendation.hold("no").reason = "yes"


def test_a_hold_recommends_nothing():
    assert Recommendation.hold("2 of 5 samples so far").is_hold
    assert not Recommendation(parallelism={"a": 1}, reason="r").is_hold


def test_placement_counts_tasks():
    placement = Placement(tasks={"w0": {"a": 2, "b": 1}, "w1": {"a": 1, "b": 0}})
    assert placement.parallelism == {"a": 3, "b": 1}
    assert placement.of("b") == {"w0": 1}


def test_a_placement_on_record_without_heavy_tasks_has_none():
    placement = Placement.model_validate_json('{"tasks": {"w0": {"a": 2}}}')
    assert placement.heavy_of("a") == []
    heavy = Placement(
        tasks={"w0": {"a": 2, "b": 1}, "w1": {"a": 1}},
        heavy={"w1": {"a": (0.2,)}, "w0": {"a": (0.4, 0.1), "b": (0.9,)}},
    )
    assert heavy.heavy_of("a") == [("w0", 0.4), ("w1", 0.2), ("w0", 0.1)]
    with pytest.raises(ValueError, match="1 tasks of 'a' are heavy on 'w1', it has 0"):
        Placement(tasks=placement.tasks, heavy={"w1": {"a": (0.2,)}})


def test_the_schema_describes_every_metric():
    fields = observation_schema()["$defs"]["OperatorMetrics"]["properties"]
    assert all("description" in field for field in fields.values())


@pytest.mark.parametrize(
    ("given_metrics", "rate"),
    [
        ({"true_input_rate": 100.0, "input_rate": 50.0, "busy": 0.5}, 50.0),
        ({"input_rate": 50.0, "busy": 0.5}, 50.0),
        ({"input_rate": 50.0, "busy": 0.0}, None),
        ({"input_rate": 0.0, "busy": 0.5}, None),
        ({"input_rate": 50.0}, None),
        ({}, None),
    ],
)
def test_rate_of_one_instance_is_unknown_rather_than_infinite(given_metrics, rate):
    seen = Observation.parse(observation(operators={"a": {"parallelism": 2, **given_metrics}}, edges=[]), "it")
    assert seen.operators["a"].per_instance_rate() == rate
