"""Dhalion against numbers worked out by hand (thesis 4.2 and 6.7.1)."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.model import Observation, Recommendation
from sluice.policies.dhalion import Dhalion, Diagnosis, Symptoms, regulate
from sluice.protocol import EMPTY_MEMORY
from tests.policies.jobs import job, recommended

QUIET = {"backpressure": 0.0, "buffer_usage": 0.5}
SOURCE = {"parallelism": 4, "input_rate": 8000.0, "backpressure": 0.0, "lag": 50_000, "lag_rate": 0.0}


def chain(source: dict[str, Any] | None = None, **changes: dict[str, Any]) -> Observation:
    """source -> map -> sink of 4, 8 and 6 instances, healthy and with something waiting everywhere."""
    return job(
        "source>map",
        "map>sink",
        source=SOURCE | (source or {}),
        map={"parallelism": 8} | QUIET | changes.get("map", {}),
        sink={"parallelism": 6} | QUIET | changes.get("sink", {}),
    )


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        pytest.param({"source": {"backpressure": 0.2}}, {"map": 10}, id="the paper's example: 20 % held up, 8 -> 10"),
        pytest.param({"source": {"backpressure": 0.8}}, {"map": 40}, id="8 / (1 - 0.8), no float slip to 41"),
        pytest.param({"source": {"backpressure": 1.0}}, {"map": 80}, id="capped at 0.9"),
        pytest.param({"source": {"backpressure": 0.3}}, {"map": 12}, id="8 / 0.7 = 11.43 rounds up"),
        pytest.param(
            {"source": {"backpressure": 0.6}, "map": {"backpressure": 0.5}},
            {"sink": 12},
            id="walks on to the first that is not blocked, by its own upstream's share",
        ),
        pytest.param(
            {"source": {"backpressure": 0.5, "lag_rate": 5000.0}}, {"map": 16}, id="backpressure explains the lag"
        ),
        pytest.param({"source": {"lag_rate": 2000.0}}, {"source": 5}, id="4 * (1 + 2000 / 8000)"),
        pytest.param({"source": {"lag_rate": 1001.0}}, {"source": 5}, id="4 * 1.125 rounds up"),
        pytest.param({"source": {"lag_rate": 1000.0}}, {}, id="at the threshold is not above it"),
        pytest.param({"source": {"backpressure": 0.05}}, {}, id="a little backpressure is none"),
        pytest.param({"source": {"lag_rate": 2000.0, "input_rate": 0.0}}, {}, id="no throughput to compare with"),
        pytest.param({"sink": {"backpressure": 0.5}}, {}, id="what blocks the sink is outside the job"),
    ],
)
def test_scaling_up_the_one_bottleneck(changes, wanted):
    now = {"source": 4, "map": 8, "sink": 6}
    assert recommended(Dhalion(), chain(**changes)) == (now | wanted if wanted else {})


def test_between_bounded_topics_the_operator_behind_the_blocked_ones_is_blamed_whatever_waits_before_them():
    """As a run on Spark shows it: all read topics, and the longest queue is that of the first."""
    observation = job(
        "source>splitter",
        "splitter>counter",
        source={"parallelism": 1, "input_rate": 300, "busy": 0.3, "backpressure": 0.25, "lag": 9000, "lag_rate": 150},
        splitter={"parallelism": 1, "input_rate": 90, "busy": 0.25, "backpressure": 0.75, "lag": 8000, "lag_rate": 60},
        counter={"parallelism": 1, "input_rate": 1800, "busy": 1.0, "backpressure": 0.0, "lag": 8000, "lag_rate": 0},
    )
    assert recommended(Dhalion(lag_rate_threshold=100), observation) == {"source": 1, "splitter": 1, "counter": 4}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        pytest.param({"map": {"buffer_usage": 0.1}}, {"map": 6}, id="8 / 1.2 = 6.67 rounds down"),
        pytest.param({"sink": {"buffer_usage": 0.19}}, {"sink": 5}, id="6 / 1.2 = 5, no float slip to 4"),
        pytest.param({"sink": {"buffer_usage": 0.2}}, {}, id="at the threshold is not below it"),
        pytest.param({"source": {"lag": 9_999}}, {"source": 3}, id="an empty topic: 4 / 1.2 = 3.33"),
        pytest.param({"source": {"lag": 10_000}}, {}, id="a topic with something in it"),
        pytest.param({"source": {"lag": None}}, {}, id="unknown is not empty"),
        pytest.param({"source": {"lag": 0, "buffer_usage": 0.9}}, {"source": 3}, id="a source is judged by its topic"),
        pytest.param({"map": {"buffer_usage": 0.0, "parallelism": 1}}, {}, id="never below 1"),
        pytest.param(
            {"source": {"lag": 0}, "map": {"buffer_usage": 0.0}, "sink": {"buffer_usage": 0.0}},
            {"source": 3, "map": 6, "sink": 5},
            id="everyone at once",
        ),
        pytest.param({"map": {"buffer_usage": None, "lag": 40.0}}, {"map": 6}, id="a topic instead of a buffer"),
    ],
)
def test_scaling_down_when_healthy(changes, wanted):
    observation = chain(**changes)
    assert recommended(Dhalion(), observation) == (observation.parallelism | wanted if wanted else {})


def test_of_two_successors_of_a_blocked_operator_the_busier_one_is_the_bottleneck():
    observation = job(
        "source>left",
        "source>right",
        source=SOURCE | {"backpressure": 0.5},
        left={"parallelism": 2, "busy": 0.2} | QUIET,
        right={"parallelism": 3, "busy": 1.0} | QUIET,
    )
    assert recommended(Dhalion(), observation) == {"source": 4, "left": 2, "right": 6}


def test_between_topics_each_operator_is_its_own_bottleneck_and_the_one_that_lacks_most_goes_first():
    observation = job(
        "source>map",
        source={"parallelism": 2, "input_rate": 10_000.0, "lag": 50_000, "lag_rate": 2000.0},
        map={"parallelism": 2, "input_rate": 4000.0, "lag": 90_000, "lag_rate": 6000.0},
    )
    assert recommended(Dhalion(), observation) == {"source": 2, "map": 5}  # 2 * (1 + 6000 / 4000)
    assert recommended(Dhalion(scale_all_bottlenecks=True), observation) == {"source": 3, "map": 5}


def test_several_bottlenecks_at_once_is_an_option():
    observation = job(
        "a>x",
        "b>y",
        a=SOURCE | {"backpressure": 0.5},
        b=SOURCE | {"backpressure": 0.2},
        x={"parallelism": 2} | QUIET,
        y={"parallelism": 4} | QUIET,
    )
    assert recommended(Dhalion(), observation) == {"a": 4, "b": 4, "x": 4, "y": 4}
    assert recommended(Dhalion(scale_all_bottlenecks=True), observation) == {"a": 4, "b": 4, "x": 4, "y": 5}


def test_with_the_bottleneck_the_next_one_can_grow_too():
    # map doubles; sink, 90 % busy, would need 1.8 times what it has; the source, 40 % busy, can send twice as much
    observation = chain(source={"backpressure": 0.5, "busy": 0.4}, sink={"busy": 0.9})
    assert recommended(Dhalion(), observation) == {"source": 4, "map": 16, "sink": 6}
    assert recommended(Dhalion(scale_all_bottlenecks=True), observation) == {"source": 4, "map": 16, "sink": 11}


def test_scaling_down_by_measured_use_is_an_option():
    # 8 instances 30 % busy need 8 * 0.3 / 0.8 = 3; a busy one is not scaled up by this
    by_use = Dhalion(scale_down_use=0.8)
    assert recommended(by_use, chain(map={"buffer_usage": 0.0, "busy": 0.3}))["map"] == 3
    assert recommended(by_use, chain(map={"buffer_usage": 0.0, "busy": 0.95})) == {}
    assert recommended(by_use, chain(map={"buffer_usage": 0.0, "busy": None}))["map"] == 6  # unknown use: by the factor


def test_the_reason_names_symptom_and_factor():
    decision, _ = Dhalion().decide(chain(source={"backpressure": 0.2}), EMPTY_MEMORY)
    assert decision.reason == "dhalion: source backpressured 20% of the time; map 8 -> 10 (times 1.25)"


def test_the_three_steps_can_be_replaced_one_by_one():
    def one_more(observation: Observation, diagnosis: Diagnosis) -> Recommendation:
        named = {name: observation.parallelism[name] + 1 for name in diagnosis.under_provisioned}
        return Recommendation(parallelism=named, reason="one more at a time")

    def always_sick(_: Observation) -> Symptoms:
        return Symptoms(lag_growth={"source": 8000.0})

    dhalion = Dhalion()
    blocked = chain(source={"backpressure": 0.8})
    assert regulate(blocked, dhalion.detect, dhalion.diagnose, one_more).parallelism == {"map": 9}
    assert regulate(chain(), always_sick, dhalion.diagnose, dhalion.resolve).parallelism["source"] == 8


@pytest.mark.parametrize(
    ("settings", "quoted"),
    [
        ({"scale_down_factor": 1.0}, "got 1.0"),
        ({"lag_rate_threshold": -1.0}, "got -1.0"),
        ({"lag_close_to_zero": -5.0}, "got -5.0"),
        ({"buffer_close_to_zero": 1.5}, "got 1.5"),
        ({"backpressure_threshold": -0.1}, "got -0.1"),
    ],
)
def test_parameters_out_of_range_are_quoted(settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        Dhalion(**settings)


def test_subtracting_leaves_eight_of_ten_for_a_factor_of_one_point_two():
    """The thesis' own example: an over-provisioned operator of 20 goes to 20 * 0.8 = 16."""
    seen = chain(map={"parallelism": 20, "buffer_usage": 0.0})
    assert recommended(Dhalion(scale_down_rule="subtract"), seen)["map"] == 16
    assert recommended(Dhalion(scale_down_rule="subtract", scale_down_factor=1.3), seen)["map"] == 14
    with pytest.raises(ValueError, match="below 2"):
        Dhalion(scale_down_rule="subtract", scale_down_factor=2.0)
