from __future__ import annotations

import pytest

from sluice.policies.threshold import Threshold
from sluice.protocol import EMPTY_MEMORY
from tests.policies.jobs import job, recommended


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        pytest.param({"busy": 0.71}, 4, id="above high"),
        pytest.param({"busy": 0.7}, None, id="at high"),
        pytest.param({"busy": 0.3}, None, id="at low"),
        pytest.param({"busy": 0.29}, 2, id="below low"),
        pytest.param({"busy": None, "cpu": 0.9}, 4, id="CPU use where the busy share is unknown"),
        pytest.param({"busy": 0.5, "cpu": 0.9}, None, id="the busy share comes first"),
        pytest.param({"busy": None}, None, id="nothing known"),
    ],
)
def test_one_more_or_one_less(metrics, wanted):
    assert recommended(Threshold(), job(map={"parallelism": 3} | metrics)).get("map") == wanted


def test_never_below_one_and_by_the_given_step():
    assert recommended(Threshold(), job(map={"parallelism": 1, "busy": 0.0})) == {}
    assert recommended(Threshold(step=5), job(map={"parallelism": 1, "busy": 1.0})) == {"map": 6}


def test_the_reason_has_the_use():
    decision, _ = Threshold().decide(job(map={"parallelism": 3, "busy": 0.95}), EMPTY_MEMORY)
    assert decision.reason == "threshold: map 3 -> 4 at use 0.95"


@pytest.mark.parametrize(("settings", "quoted"), [({"low": 0.9}, "got low 0.9"), ({"step": 0}, "got 0")])
def test_parameters_out_of_range_are_quoted(settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        Threshold(**settings)
