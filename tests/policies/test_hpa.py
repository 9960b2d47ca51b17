"""HPA-CPU and HPA-Varga against numbers worked out by hand (thesis 4.4, 4.5, 6.7.3, 6.7.4)."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.model import Observation
from sluice.policies.hpa_cpu import HpaCpu
from sluice.policies.hpa_varga import HpaVarga
from sluice.protocol import EMPTY_MEMORY
from tests.policies.jobs import decisions, job, recommended


def at_cpu(cpu: float | None, parallelism: int = 4, time_s: float = 0.0) -> Observation:
    return job(map={"parallelism": parallelism, "cpu": cpu}, time_s=time_s)


@pytest.mark.parametrize(
    ("cpu", "wanted"),
    [
        pytest.param(0.9, 6, id="4 * 0.9 / 0.7 = 5.14"),
        pytest.param(0.7, None, id="on target"),
        pytest.param(0.71, 5, id="no tolerance: 4.06 rounds up"),
        pytest.param(0.35, 2, id="half the target, half the instances"),
        pytest.param(0.0, 1, id="idle: never below 1"),
        pytest.param(None, None, id="unknown"),
    ],
)
def test_cpu_by_the_ratio_rule(cpu, wanted):
    assert recommended(HpaCpu(), at_cpu(cpu)).get("map") == wanted


def test_a_target_at_the_ceiling_of_the_metric_never_scales_up():
    assert recommended(HpaCpu(target=0.9), at_cpu(0.9)) == {}
    assert recommended(HpaCpu(target=1.0), at_cpu(0.9, parallelism=10)) == {"map": 9}


def test_the_largest_of_the_window_is_recommended():
    story = [at_cpu(0.9, time_s=0), at_cpu(0.2, time_s=299), at_cpu(0.2, time_s=300)]
    assert [decision.parallelism.get("map") for decision in decisions(HpaCpu(), story)] == [6, 6, 2]


def test_a_window_of_no_time_follows_the_metric():
    story = [at_cpu(0.9, time_s=0), at_cpu(0.2, time_s=15)]
    assert [decision.parallelism["map"] for decision in decisions(HpaCpu(window_s=0), story)] == [6, 2]


def test_unknown_metrics_keep_one_operator_and_are_named():
    observation = job("a>b", a={"parallelism": 4, "cpu": 0.9}, b={"parallelism": 3})
    decision, _ = HpaCpu().decide(observation, EMPTY_MEMORY)
    assert decision.parallelism == {"a": 6, "b": 3}
    assert decision.reason == "hpa-cpu: a 4 -> 6, cpu 0.9 of 0.7; kept, metrics unknown: b"


@pytest.mark.parametrize(
    ("cpu", "wanted"),
    [
        pytest.param(0.76, None, id="8.6 % above"),
        pytest.param(0.64, None, id="8.6 % below"),
        pytest.param(0.78, 5, id="11 % above: 4.46"),
        pytest.param(0.5, 3, id="29 % below: 2.86"),
    ],
)
def test_kubernetes_tolerance(cpu, wanted):
    assert recommended(HpaCpu(tolerance=0.1), at_cpu(cpu)).get("map") == wanted


def test_kubernetes_step_policies_limit_growth_per_period():
    # nine times as many are desired: 2 get 4 more, 6 and 20 become twice as many
    limited = HpaCpu(target=0.1, step_policies=True)
    grown = [recommended(limited, at_cpu(0.9, parallelism=count))["map"] for count in (2, 6, 20)]
    assert grown == [6, 12, 40]
    # 5 s later the period of 15 s has already used its 4
    story = [at_cpu(0.9, 2, time_s=0), at_cpu(0.9, 6, time_s=5), at_cpu(0.9, 6, time_s=16)]
    assert [decision.parallelism.get("map") for decision in decisions(limited, story)] == [6, None, 12]


def test_kubernetes_waits_only_when_scaling_down():
    # at 15 s the metric is content: Kubernetes stays, the thesis' HPA still goes up to what the first window desired
    story = [at_cpu(0.9, time_s=0), at_cpu(0.7, time_s=15), at_cpu(0.2, time_s=30)]
    assert [d.parallelism.get("map") for d in decisions(HpaCpu(step_policies=True), story)] == [6, None, None]
    assert [d.parallelism.get("map") for d in decisions(HpaCpu(), story)] == [6, 6, 6]


def test_a_saturated_metric_is_helped_by_the_sources():
    # the source reads 1000 of 1500 arriving: 4 * 0.9 / 0.7 * 1.5 = 7.7; without the option 5.14
    observation = job(
        "source>map",
        source={"parallelism": 1, "cpu": 0.7, "input_rate": 1000.0, "arrival_rate": 1500.0},
        map={"parallelism": 4, "cpu": 0.9},
    )
    assert recommended(HpaCpu(), observation) == {"source": 1, "map": 6}
    assert recommended(HpaCpu(saturates_at=0.85), observation) == {"source": 1, "map": 8}


def varga_job(
    time_s: float = 0.0,
    *,
    lag: float | None = None,
    lag_rate: float | None = 0.0,
    source: dict[str, Any] | None = None,
    **at_map: Any,
) -> Observation:
    """Both operators on target; the source reads 4000 rec/s."""
    return job(
        "source>map",
        time_s=time_s,
        source={"parallelism": 4, "input_rate": 4000.0, "idle": 0.3, "lag": lag, "lag_rate": lag_rate} | (source or {}),
        map={"parallelism": 10, "idle": 0.3, "buffer_usage": 0.0} | at_map,
    )


@pytest.mark.parametrize(
    ("at_map", "wanted"),
    [
        pytest.param({"idle": 0.1}, 13, id="10 * 0.9 / 0.7 = 12.86"),
        pytest.param({"idle": 1.0}, 1, id="idle all the time"),
        pytest.param({"idle": None, "busy": 0.5, "backpressure": 0.09}, 9, id="busy and blocked: 10 * 0.59 / 0.7"),
        pytest.param({"idle": None, "busy": 0.35}, 5, id="busy alone"),
        pytest.param({"idle": None}, None, id="unknown"),
    ],
)
def test_varga_utilisation(at_map, wanted):
    assert recommended(HpaVarga(), varga_job(**at_map)).get("map") == wanted


@pytest.mark.parametrize(
    ("observation", "wanted"),
    [
        pytest.param(varga_job(lag_rate=2000.0), {"source": 6}, id="none blocked: the source, 4 * 1.5"),
        pytest.param(
            varga_job(lag_rate=2000.0, source={"backpressure": 0.6}), {"map": 15}, id="the bottleneck: 10 * 1.5"
        ),
        pytest.param(varga_job(lag_rate=1000.0), {}, id="at the threshold lag is ignored"),
        pytest.param(varga_job(lag_rate=-3000.0), {}, id="draining lag asks for nothing"),
        pytest.param(
            varga_job(lag_rate=2000.0, source={"idle": 0.0, "backpressure": 0.6}),
            {"source": 6, "map": 15},
            id="a blocked source counts as used: 4 / 0.7",
        ),
        pytest.param(
            varga_job(lag_rate=2000.0, source={"idle": 0.0}), {"source": 6}, id="the larger result wins: 5.7, 6"
        ),
        pytest.param(varga_job(lag_rate=2000.0, source={"input_rate": 0.0}), {}, id="nothing read to compare with"),
    ],
)
def test_varga_relative_change_of_lag(observation, wanted):
    assert recommended(HpaVarga(), observation) == (observation.parallelism | wanted if wanted else {})


def test_varga_of_two_successors_of_a_blocked_source_only_the_busier_one_is_the_bottleneck():
    observation = job(
        "source>left",
        "source>right",
        source={"parallelism": 4, "input_rate": 4000.0, "idle": 0.3, "backpressure": 0.6, "lag": 0, "lag_rate": 2000.0},
        left={"parallelism": 10, "idle": 0.3, "busy": 0.7, "buffer_usage": 0.0},
        right={"parallelism": 10, "idle": 0.3, "busy": 0.3, "backpressure": 0.0, "buffer_usage": 0.0},
    )
    assert recommended(HpaVarga(), observation) == {"source": 4, "left": 15, "right": 10}


def test_varga_takes_the_slope_of_the_last_minute():
    # growing by 2000/s for a minute; the derivative of a single window does not count once there are two points
    lags = [(0, 500_000), (60, 0), (75, 30_000), (90, 60_000), (105, 90_000), (120, 120_000)]
    story = [varga_job(time_s=at, lag=lag, lag_rate=0.0) for at, lag in lags]
    made = decisions(HpaVarga(window_s=0), story)
    assert made[1].is_hold  # 500,000 -> 0 is no growth
    assert made[-1].parallelism == {"source": 6, "map": 10}
    assert "relative change of lag 1.5 of 1" in made[-1].reason


def test_varga_lag_counts_in_the_topics_between_operators_too():
    between = job(
        "source>map",
        source={"parallelism": 4, "input_rate": 4000.0, "idle": 0.3, "lag": 0, "lag_rate": 0.0},
        map={"parallelism": 10, "idle": 0.3, "lag": 90_000, "lag_rate": 2000.0},
    )
    assert recommended(HpaVarga(), between) == {"source": 4, "map": 15}


def test_kubernetes_does_not_scale_down_while_a_metric_is_missing():
    shrinking = varga_job(lag_rate=None, idle=0.65)
    assert recommended(HpaVarga(), shrinking) == {"source": 4, "map": 5}
    assert recommended(HpaVarga(missing_metric_rules=True), shrinking) == {}
    growing = varga_job(lag_rate=None, idle=0.1)
    assert recommended(HpaVarga(missing_metric_rules=True), growing) == {"source": 4, "map": 13}


@pytest.mark.parametrize(
    ("policy", "settings", "quoted"),
    [
        (HpaCpu, {"target": 0.0}, "got 0.0"),
        (HpaCpu, {"window_s": -1.0}, "got -1.0"),
        (HpaCpu, {"tolerance": 1.0}, "got 1.0"),
        (HpaCpu, {"saturates_at": 2.0}, "got 2.0"),
        (HpaVarga, {"utilisation_target": -0.1}, "got -0.1"),
        (HpaVarga, {"derivative_s": 0.0}, "got 0.0"),
        (HpaVarga, {"lag_rate_threshold": -1.0}, "got -1.0"),
        (HpaVarga, {"backpressure_threshold": 1.1}, "got 1.1"),
    ],
)
def test_parameters_out_of_range_are_quoted(policy, settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        policy(**settings)
