from __future__ import annotations

import pytest

from sluice.dataflow.bottleneck import backpressured, blocked_factor, upstream_backpressure, walk_downstream
from sluice.model import Observation
from tests.policies.jobs import job


def fan_in(one: float | None, other: float | None) -> Observation:
    return job(
        "one>join",
        "other>join",
        one={"parallelism": 1, "backpressure": one},
        other={"parallelism": 1, "backpressure": other},
        join={"parallelism": 1},
    )


@pytest.mark.parametrize(
    ("one", "other", "largest"),
    [
        pytest.param(0.2, 0.5, {"join": 0.5}, id="the largest"),
        pytest.param(None, 0.2, {"join": 0.2}, id="as far as known"),
        pytest.param(0.0, 0.0, {"join": 0.0}, id="known to be none"),
        pytest.param(None, None, {}, id="unknown is not 0"),
    ],
)
def test_backpressure_upstream_of_an_operator(one, other, largest):
    assert upstream_backpressure(fan_in(one, other), ["join"]) == largest


def test_unknown_backpressure_blocks_nothing_and_ends_the_walk():
    observation = fan_in(0.5, None)
    assert backpressured(observation, 0.1) == ("one",)
    assert walk_downstream(observation, ["one"]) == ("join",)


def test_the_factor_is_bounded():
    assert blocked_factor(0.5) == 2
    assert blocked_factor(1.0) == pytest.approx(10)
