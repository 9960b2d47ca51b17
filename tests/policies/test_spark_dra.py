from __future__ import annotations

import pytest

from sluice.model import Observation
from sluice.policies.spark_dra import SparkDra
from tests.policies.jobs import decisions, job, recommended


def batches(batch_s: float | None, time_s: float = 0.0) -> Observation:
    return job(query={"parallelism": 4, "batch_s": batch_s, "batch_interval_s": 10.0}, time_s=time_s)


@pytest.mark.parametrize(
    ("batch_s", "wanted"),
    [
        pytest.param(9.0, 5, id="ratio 0.9 adds max(round(0.9), 1)"),
        pytest.param(8.9, None, id="just below"),
        pytest.param(25.0, 7, id="ratio 2.5 rounds half up: 3 more"),
        pytest.param(3.1, None, id="just above"),
        pytest.param(3.0, 3, id="ratio 0.3 removes one"),
        pytest.param(None, None, id="unknown"),
    ],
)
def test_by_batch_time_over_interval(batch_s, wanted):
    assert recommended(SparkDra(), batches(batch_s)).get("query") == wanted


def test_decides_once_a_minute_by_the_mean_of_its_windows():
    story = [batches(9.0, 0), batches(20.0, 15), batches(20.0, 30), batches(20.0, 45), batches(0.0, 60)]
    made = decisions(SparkDra(), story)
    assert [decision.parallelism.get("query") for decision in made] == [5, None, None, None, 6]  # mean ratio 1.5
    assert "45 of 60 s" in made[3].reason


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        pytest.param({"input_rate": 100.0, "busy": 1.0, "arrival_rate": 260.0}, 7, id="load / capacity = 2.6"),
        pytest.param({"input_rate": 100.0, "busy": 1.0, "lag_rate": 50.0}, 6, id="read and piled up: 1.5"),
        pytest.param({"busy": 0.2}, 3, id="the busy share"),
        pytest.param({}, None, id="nothing known"),
    ],
)
def test_on_an_engine_without_batches(metrics, wanted):
    assert recommended(SparkDra(), job(source={"parallelism": 4} | metrics)).get("source") == wanted


def test_what_backpressure_holds_back_counts_as_arriving():
    # map takes 100 of the 200 rec/s its source could send: 200 / 125 = 1.6, rounded 2 more
    observation = job(
        "source>map",
        source={"parallelism": 1, "busy": 0.5, "backpressure": 0.5},
        map={"parallelism": 1, "input_rate": 100.0, "busy": 0.8},
    )
    assert recommended(SparkDra(), observation) == {"source": 1, "map": 3}


def test_never_below_one():
    assert recommended(SparkDra(), job(source={"parallelism": 1, "busy": 0.0})) == {}


@pytest.mark.parametrize(
    ("settings", "quoted"), [({"interval_s": 0.0}, "got 0.0"), ({"scaling_up_ratio": 0.2}, "and 0.2")]
)
def test_parameters_out_of_range_are_quoted(settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        SparkDra(**settings)
