"""Rates along the graph, worked out by hand; what DS2 makes of them is in tests/policies/test_ds2.py."""

from __future__ import annotations

import pytest

from sluice.dataflow.rates import (
    Need,
    arriving_rate,
    capacity,
    expected_input_rates,
    instances_needed,
    pass_along,
    passed_input_rates,
    real_input_rates,
    selectivities,
    source_arrival_rate,
    source_loads,
    target_rates,
    topic_readers,
)
from sluice.model import OperatorMetrics, Topology
from tests.policies.jobs import job

DIAMOND = Topology.of("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


def seen(**metrics: float | None) -> OperatorMetrics:
    return OperatorMetrics.model_validate({"parallelism": 2, **metrics})


@pytest.mark.parametrize(
    ("metrics", "arriving", "at_a_source"),
    [
        pytest.param(seen(arrival_rate=900, input_rate=500, lag_rate=100), 900, 900, id="reported"),
        pytest.param(seen(input_rate=500, lag_rate=100), 600, 600, id="read and piled up"),
        pytest.param(seen(input_rate=500, lag_rate=-600), 0, 0, id="never below 0"),
        pytest.param(seen(true_input_rate=1000, busy=0.5, lag_rate=100), 600, 600, id="read, as true rate times busy"),
        pytest.param(seen(input_rate=500), 500, None, id="a source may read less than arrives"),
        pytest.param(seen(lag_rate=100), None, None, id="growth alone"),
        pytest.param(seen(), None, None, id="nothing known"),
    ],
)
def test_what_arrives_at_an_operator_and_at_a_source(metrics, arriving, at_a_source):
    assert arriving_rate(metrics) == arriving
    assert source_arrival_rate(metrics) == at_a_source


def test_capacity_is_the_true_rate_of_all_instances_and_unknown_without_work():
    assert capacity(seen(input_rate=500, busy=0.5)) == 1000
    assert capacity(seen(true_input_rate=800)) == 800
    assert capacity(seen(true_input_rate=800, busy=0.0)) is None


def test_the_loads_of_sources_are_unknown_if_one_is():
    assert source_loads(job(a={"parallelism": 1, "arrival_rate": 10}, b={"parallelism": 1, "arrival_rate": 20})) == {
        "a": 10,
        "b": 20,
    }
    assert source_loads(job(a={"parallelism": 1, "arrival_rate": 10}, b={"parallelism": 1})) is None


def test_an_operator_behind_a_bounded_buffer_reads_no_topic():
    bounded = {"parallelism": 1, "buffer_usage": 0.5}
    assert topic_readers(job("a>b", "b>c", a=bounded, b=bounded, c={"parallelism": 1})).keys() == {"a", "c"}


def test_loads_pass_along_the_graph_by_the_selectivity_of_each_edge():
    selectivity = {"a": {"b": 0.5, "c": 2.0}, "b": {"d": 1.0}, "c": {"d": 0.1}, "d": {}}
    assert pass_along(DIAMOND, {"a": 100}, selectivity) == {"a": 100, "b": 50, "c": 200, "d": 70}
    with_backlog = pass_along(DIAMOND, {"a": 100}, selectivity, {"b": 30})
    assert with_backlog == {"a": 100, "b": 80, "c": 200, "d": 100}


def test_downstream_of_what_is_unknown_everything_is():
    selectivity = {"a": {"b": 1.0}, "b": {"d": 1.0}, "c": {"d": 1.0}, "d": {}}
    assert pass_along(DIAMOND, {"a": 100}, selectivity) == {"a": 100, "b": 100, "c": None, "d": None}
    assert pass_along(DIAMOND, {"a": None}, selectivity) == {"a": None, "b": None, "c": None, "d": None}


def test_a_graph_without_edges_needs_no_selectivity_and_no_output():
    query = {"parallelism": 2, "true_input_rate": 1000, "busy": 0.9, "arrival_rate": 2000}
    observation = job(query=query)
    assert selectivities(observation) == {"query": {}}
    assert instances_needed(observation, {}) == {"query": Need(2000, 500, 4)}


def test_lag_is_added_to_the_target_of_its_reader_and_passed_on():
    observation = job(
        "source>map",
        source={"parallelism": 1, "input_rate": 100, "output_rate": 200, "arrival_rate": 100, "lag": 6000},
        map={"parallelism": 1, "lag": None},
    )
    selectivity = selectivities(observation)
    assert target_rates(observation, selectivity) == {"source": 100, "map": 200}
    assert target_rates(observation, selectivity, catch_up_s=60) == {"source": 200, "map": 400}


@pytest.mark.parametrize(
    ("source", "at_map"),
    [
        pytest.param({"arrival_rate": 300, "input_rate": 100, "output_rate": 50}, 150, id="all known"),
        pytest.param({"input_rate": 100, "output_rate": 50}, 50, id="load unknown: as it reads now"),
        pytest.param({"arrival_rate": 300}, 300, id="selectivity unknown: one for one"),
        pytest.param({}, 0, id="nothing known"),
    ],
)
def test_expected_rates_are_known_for_every_operator(source, at_map):
    observation = job("source>map", source={"parallelism": 1, **source}, map={"parallelism": 1})
    assert expected_input_rates(observation)["map"] == at_map


def test_expected_rates_of_a_fan_out_follow_its_edges():
    observation = job(
        "source>left",
        "source>right",
        source={"parallelism": 1, "arrival_rate": 2000, "input_rate": 1000, "output_rate": 1000},
        left={"parallelism": 1, "input_rate": 900},
        right={"parallelism": 1, "input_rate": 100},
    )
    assert expected_input_rates(observation) == {"source": 2000, "left": 1800, "right": 200}


@pytest.mark.parametrize(
    ("read", "arriving", "at_map"),
    [
        pytest.param(1000, 800, 800, id="catching up: reads more than arrives"),
        pytest.param(1000, 1100, 1100, id="slightly too small"),
        pytest.param(1000, 5000, 1250, id="just started: at most 1.25 times what is seen"),
        pytest.param(0, 800, 1000, id="nothing read to compare with"),
    ],
)
def test_real_input_rates_are_scaled_to_what_arrives(read, arriving, at_map):
    observation = job(
        "source>map",
        source={"parallelism": 1, "input_rate": read, "arrival_rate": arriving},
        map={"parallelism": 1, "input_rate": 1000},
    )
    assert real_input_rates(observation) == {"source": arriving, "map": pytest.approx(at_map)}


def test_passed_input_rates_do_not_move_with_the_batches_that_fell_into_a_window():
    """Three words a line; the window has two batches of the splitter and three of what it wrote."""

    def window(received):
        return job(
            "source>split",
            "split>count",
            source={"parallelism": 1, "input_rate": 1000, "output_rate": 1000, "arrival_rate": 1000},
            split={"parallelism": 1, "input_rate": 800, "output_rate": 2400},
            count={"parallelism": 1, "input_rate": received},
        )

    for received in (2000, 4000):
        assert passed_input_rates(window(received)) == {"source": 1000, "split": 1000, "count": pytest.approx(3000)}
    assert real_input_rates(window(4000))["count"] == 4000


def test_passed_input_rates_are_those_received_where_an_operator_shows_no_output():
    observation = job(
        "source>map",
        "map>sink",
        source={"parallelism": 1, "input_rate": 1000, "output_rate": 1000, "arrival_rate": 1000},
        map={"parallelism": 1, "input_rate": 1000},
        sink={"parallelism": 1, "input_rate": 400},
    )
    assert passed_input_rates(observation) == {"source": 1000, "map": 1000, "sink": 400}
