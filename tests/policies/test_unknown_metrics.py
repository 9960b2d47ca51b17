"""A Spark application seen from inside: queries without edges, whose output and backpressure are not measured."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.model import Observation, Recommendation
from sluice.policies.dhalion import Dhalion
from sluice.policies.ds2 import Ds2
from sluice.policies.flink import Flink
from sluice.policies.hpa_cpu import HpaCpu
from sluice.policies.hpa_varga import HpaVarga, utilisation
from sluice.policies.spark_dra import SparkDra
from sluice.policies.threshold import Threshold
from sluice.protocol import EMPTY_MEMORY, Policy
from tests.policies.jobs import job

UNKNOWN = dict.fromkeys(("backpressure", "output_rate", "true_output_rate", "idle"))
AT_ONCE = Flink(restart_s=0.0, scale_down_delay_s=0.0)


def queries(load: float, **more: Any) -> Observation:
    """Two queries on 4 executors of 100 rec/s each; `first` has the load, `second` uses 70 % of its capacity."""
    read = min(load, 400.0)
    second = {"parallelism": 4, "input_rate": 280.0, "true_input_rate": 400.0, "arrival_rate": 280.0, "busy": 0.7}
    first = {
        "parallelism": 4,
        "input_rate": read,
        "true_input_rate": 400.0,
        "arrival_rate": load,
        "busy": read / 400.0,
        "cpu": 0.9 * read / 400.0,
        "lag": 1000.0 if load > 400.0 else 0.0,
        "lag_rate": load - read,
    }
    kept = {"cpu": 0.7, "lag": 20_000.0, "lag_rate": 0.0}
    return job(first=first | UNKNOWN | more, second=second | kept | UNKNOWN)


def recommend(policy: Policy, observation: Observation) -> Recommendation:
    return policy.decide(observation, EMPTY_MEMORY)[0]


@pytest.mark.parametrize(
    ("policy", "overloaded", "quiet"),
    [
        pytest.param(Ds2(over_provisioning=1.0), 8, 1, id="ds2: 800 and 80 rec/s at 100 each"),
        pytest.param(AT_ONCE, 12, 2, id="flink: 800 / 0.7; at most 60 % fewer"),
        pytest.param(HpaCpu(), 6, 2, id="hpa-cpu: 4 * 0.9 / 0.7; 4 * 0.18 / 0.7"),
        pytest.param(HpaVarga(lag_rate_threshold=100.0), 7, 2, id="hpa-varga: 4 * (1 + 400 / 680); 4 * 0.2 / 0.7"),
        pytest.param(Dhalion(lag_rate_threshold=100.0), 8, 3, id="dhalion: 4 * (1 + 400 / 400); 4 / 1.2"),
        pytest.param(SparkDra(), 6, 3, id="spark-dra: load / capacity is 2, so 2 more; 0.2, so one less"),
        pytest.param(Threshold(), 5, 3, id="threshold"),
    ],
)
def test_policies_do_with_what_is_known_of_a_query(policy: Policy, overloaded: int, quiet: int) -> None:
    for load, expected in ((800.0, overloaded), (80.0, quiet)):
        recommendation = recommend(policy, queries(load))
        assert recommendation.parallelism["first"] == expected, recommendation.reason


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        pytest.param({"idle": 0.1, "busy": 0.5}, 0.9, id="1 - idle where idle is known"),
        pytest.param({"busy": 0.5}, 0.5, id="busy alone"),
        pytest.param({"busy": 0.5, "backpressure": 0.3}, 0.8, id="busy and blocked"),
        pytest.param({"backpressure": 0.3}, None, id="blocked alone says too little"),
    ],
)
def test_utilisation_of_hpa_varga(metrics, expected):
    observation = job(query={"parallelism": 1} | metrics)
    assert utilisation(observation.operators["query"]) == expected


def test_dhalion_holds_where_neither_backpressure_nor_the_growth_of_lag_is_known():
    recommendation = recommend(Dhalion(), job(query={"parallelism": 4, "busy": 0.1, "lag": 0.0} | UNKNOWN))
    assert recommendation.is_hold
    assert recommendation.reason.startswith("dhalion: no backpressure or lag known of any of 1 operators")


def test_spark_dra_adds_nothing_for_a_backpressure_it_does_not_know():
    operators = {"source": {"parallelism": 1, "busy": 0.5}, "map": {"parallelism": 1, "input_rate": 100.0, "busy": 0.8}}
    assert recommend(SparkDra(), job("source>map", **operators)).is_hold  # 100 / 125 = 0.8
