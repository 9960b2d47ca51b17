"""The Flink operator's autoscaler against numbers worked out by hand from its capacity formula."""

from __future__ import annotations

from typing import Any

import pytest

from sluice.model import Observation
from sluice.policies.flink import Flink
from sluice.protocol import EMPTY_MEMORY
from tests.policies.jobs import decisions, job, recommended

PLAIN = Flink(restart_s=0.0)
AT_ONCE_AVERAGED = Flink(restart_s=0.0, scale_down_delay_s=0.0, stabilisation_s=0.0)
AT_ONCE = Flink(restart_s=0.0, scale_down_delay_s=0.0, stabilisation_s=0.0, metric_window_s=1.0)


def source(load: float, parallelism: int = 4, each: float = 100.0, time_s: float = 0.0, **more: Any) -> Observation:
    """One source whose instances can do `each` rec/s, reading what arrives as far as it can."""
    read = min(load, parallelism * each)
    metrics = {
        "parallelism": parallelism,
        "input_rate": read,
        "output_rate": read,
        "busy": read / (parallelism * each),
        "arrival_rate": load,
    }
    return job(source=metrics | more, time_s=time_s)


@pytest.mark.parametrize(
    ("policy", "observation", "wanted"),
    [
        pytest.param(PLAIN, source(700.0), 10, id="700 / 0.7 = 1000 at 100 each"),
        pytest.param(PLAIN, source(399.0), None, id="utilisation 0.9975 is inside 0.7 + 0.3"),
        pytest.param(PLAIN, source(401.0), 6, id="above 1 is outside: 401 / 0.7 = 573"),
        pytest.param(AT_ONCE, source(161.0), None, id="utilisation 0.4025 is inside 0.7 - 0.3"),
        pytest.param(AT_ONCE, source(140.0), 2, id="0.35 is outside: 140 / 0.7 = 200"),
        pytest.param(AT_ONCE, source(1.0, parallelism=20), 8, id="at most 60 % fewer at once"),
        pytest.param(PLAIN, source(350.0, lag=360_000), 7, id="350 / 0.7 + 360000 / 1800 = 700"),
        pytest.param(Flink(), source(700.0), 12, id="restart of 300 s: 1000 + 700 * 300 / 1800 = 1116.7"),
        pytest.param(Flink(restart_s=0, key_groups=32), source(700.0), 16, id="10 -> the next divisor of 32"),
        pytest.param(Flink(restart_s=0, key_groups=18), source(700.0), 10, id="no divisor from 10 to 9: as it is"),
        pytest.param(Flink(restart_s=0, key_groups=8), source(700.0), 8, id="never more than partitions"),
    ],
)
def test_one_operator(policy, observation, wanted):
    assert recommended(policy, observation).get("source") == wanted


def test_lag_to_catch_up_is_passed_on_downstream():
    # source 100 / 0.7 + 180000 / 1800 = 242.9 of 400: inside; map, which doubles: (100 / 0.7 + 100) * 2 = 485.7
    observation = job(
        "source>map",
        source={
            "parallelism": 4,
            "input_rate": 100,
            "output_rate": 200,
            "busy": 0.25,
            "arrival_rate": 100,
            "lag": 180_000,
        },
        map={"parallelism": 2, "input_rate": 200, "busy": 1.0},
    )
    assert recommended(PLAIN, observation) == {"source": 4, "map": 5}


def test_one_operator_outside_its_band_changes_all():
    # map is outside; source, at utilisation 0.9, is inside, but 360 / 0.7 = 514 rides along
    observation = job(
        "source>map",
        source={"parallelism": 4, "input_rate": 360, "output_rate": 360, "busy": 0.9, "arrival_rate": 360},
        map={"parallelism": 2, "input_rate": 300, "busy": 1.0, "lag_rate": 60},
    )
    assert recommended(PLAIN, observation) == {"source": 6, "map": 4}
    calm = job(
        "source>map",
        source={"parallelism": 4, "input_rate": 360, "output_rate": 360, "busy": 0.9, "arrival_rate": 360},
        map={"parallelism": 4, "input_rate": 360, "busy": 0.6},
    )
    assert recommended(PLAIN, calm) == {}


def test_shrinking_waits_an_hour_and_goes_to_the_most_needed_in_it():
    # 10 instances: 100 rec/s asks for 4 (at most 60 % fewer), 300 rec/s for 300 / 0.7 / 100 = 4.3 -> 5
    loads = {0: 100.0, 1800: 300.0, 3599: 100.0, 3600: 100.0}
    story = [source(load, parallelism=10, time_s=at) for at, load in loads.items()]
    made = decisions(Flink(restart_s=0.0, metric_window_s=1.0), story)
    assert [decision.parallelism.get("source") for decision in made] == [None, None, None, 5]
    assert "may shrink to 4 in 3,600 s" in made[0].reason


def test_growth_cancels_pending_shrinking():
    story = [source(100.0, time_s=0), source(380.0, time_s=1800), source(100.0, time_s=3600)]
    assert all(decision.is_hold for decision in decisions(Flink(restart_s=0.0, metric_window_s=1.0), story))


def test_rates_are_averaged_over_the_metric_window():
    # 300 and 500 rec/s: 400 / 0.7 = 571 -> 6, though the last window alone asks for 8
    story = [source(300.0, time_s=0), source(500.0, time_s=15)]
    made = decisions(Flink(restart_s=0.0, utilisation_band=0.2), story)
    assert made[1].parallelism == {"source": 6}


def test_averages_survive_a_change_of_the_order_in_which_operators_are_reported():
    def two(order: tuple[str, str], time_s: float) -> Observation:
        loads = {"small": 300.0, "large": 3000.0}
        seen = {name: source(loads[name], parallelism=40).operators["source"].model_dump() for name in order}
        return job(**seen, time_s=time_s)

    made = decisions(AT_ONCE_AVERAGED, [two(("small", "large"), 0), two(("large", "small"), 60)])
    # 300 / 0.7 = 429, at most 60 % fewer at once; 3000 / 0.7 = 4286 -> 43
    assert made[0].parallelism == made[1].parallelism == {"small": 16, "large": 43}


def test_metrics_right_after_a_rescale_are_ignored_and_averages_start_anew():
    story = [
        source(300.0, time_s=0),
        source(700.0, parallelism=5, time_s=60),
        source(700.0, parallelism=5, time_s=345),
        source(700.0, parallelism=5, time_s=360),
    ]
    made = decisions(PLAIN, story)
    assert [decision.parallelism.get("source") for decision in made] == [None, None, None, 10]
    assert "285 of 300 s since the last rescale" in made[2].reason


def test_a_scale_up_that_brought_nothing_is_not_repeated():
    # 4 -> 8 instances were to bring 400 -> 800; 430 is 7.5 % of the way, 500 is 25 %
    for each, wanted in ((430 / 8, None), (500 / 8, 16)):
        story = [source(700.0, time_s=0), source(700.0, parallelism=8, each=each, time_s=400)]
        patient = Flink(restart_s=0.0, stabilisation_s=0.0)
        made = decisions(patient, story)
        assert made[1].parallelism.get("source") == wanted
    assert (
        "its last scale-up brought less than 10%"
        in decisions(
            Flink(restart_s=0.0, stabilisation_s=0.0),
            [source(700.0), source(700.0, parallelism=8, each=430 / 8, time_s=400)],
        )[1].reason
    )


def test_operators_of_unknown_rate_are_kept():
    observation = job(
        "source>map",
        source={"parallelism": 4, "input_rate": 400, "output_rate": 400, "busy": 1.0, "arrival_rate": 700},
        map={"parallelism": 2, "input_rate": 400, "busy": None},
    )
    assert recommended(PLAIN, observation) == {"source": 10, "map": 2}


def test_the_reason_has_capacity_and_need():
    decision, _ = PLAIN.decide(source(700.0), EMPTY_MEMORY)
    assert decision.reason == "flink: outside the band: source 4 -> 10, can take 400 of 1,000 rec/s required"


@pytest.mark.parametrize(
    ("settings", "quoted"),
    [
        ({"target_utilisation": 0.0}, "got 0.0"),
        ({"utilisation_band": -0.1}, "got -0.1"),
        ({"catch_up_s": 0.0}, "got 0.0"),
        ({"restart_s": -1.0}, "got -1.0"),
    ],
)
def test_parameters_out_of_range_are_quoted(settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        Flink(**settings)
