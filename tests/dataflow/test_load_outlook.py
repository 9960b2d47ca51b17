"""Paths the load may take: as steep, and as wide, as the past allows."""

from __future__ import annotations

import math
import random

import pytest

from sluice.dataflow.load_outlook import (
    FIRST_TREND,
    Skill,
    after_jump,
    in_steps,
    outlook,
    steady_windows,
    unforeseen,
)


def ends(past, steps=10, **options):
    return sorted(path[-1] for path in outlook(past, steps, **options))


def test_steps_are_counted_back_from_now():
    assert in_steps([9.0, 1.0, 3.0, 5.0, 7.0], 2) == [2.0, 6.0]


def test_a_ramp_goes_on_and_a_constant_load_stays():
    ramp = [100.0 + 5 * step for step in range(60)]
    assert sum(ends(ramp)) / len(ends(ramp)) > ramp[-1] + 15
    assert ends([100.0] * 60) == pytest.approx([100.0] * 10)


def test_a_job_that_starts_is_no_trend():
    starting = [30.0 * window for window in range(1, FIRST_TREND + 1)]
    assert outlook(starting, 4, band=False) == [[starting[-1]] * 4]
    assert outlook([*starting, starting[-1] + 30.0], 4, band=False)[0][-1] > starting[-1] + 30.0


def test_a_trend_that_never_came_true_is_not_believed():
    chance = random.Random(1)
    jumps = [chance.choice([100.0, 200.0]) for _ in range(100)]
    mean = outlook([*jumps, 100.0, 200.0], 10, band=False)[0][-1]
    assert mean < 230


def test_the_band_is_as_wide_as_the_past_was_uncertain():
    chance = random.Random(2)
    calm = [1000 + chance.uniform(-5, 5) for _ in range(80)]
    wild = [1000 + chance.uniform(-300, 300) for _ in range(80)]
    assert ends(calm)[-1] - ends(calm)[0] < 40 < 200 < ends(wild)[-1] - ends(wild)[0]


def test_a_wave_is_expected_to_turn_where_it_turned_before():
    wave = [1000 + 800 * math.sin(step / 9.55) for step in range(140)]  # a period of 60 steps
    peak = max(range(75, 135), key=lambda at: wave[at])
    paths = outlook(wave[: peak - 3], 10)
    assert max(max(path) for path in paths) < 1.1 * max(wave)
    assert sum(path[-1] for path in paths) / len(paths) < 1.02 * max(wave)


def test_a_jump_seen_from_below_does_not_lead_beyond_all_that_was():
    assert ends([0.0] * 20 + [1000.0] * 20)[-1] <= 1250.0


def test_a_jump_that_was_seen_once_is_one_path_from_however_many_moments_it_was_ahead():
    low, high = [30.0] * 8, [200.0] * 20
    assert len([end for end in ends(low + high + low) if end > 100]) == 1
    assert len([end for end in ends(low + high + low + high + low) if end > 100]) == 2


@pytest.mark.parametrize("past", [[5.0], [5.0, 6.0], [0.0]])
def test_a_young_job_has_paths_too_and_none_is_negative(past):
    paths = outlook(past, 4)
    assert all(len(path) == 4 and min(path) >= 0 for path in paths)


def test_a_jump_is_no_trend():
    mean = outlook([100.0] * 40 + [500.0], 10, band=False)[0]
    assert mean[-1] < 700


def test_what_comes_after_a_rest_has_no_trend_until_the_rest_is_long_ago():
    rest = [0.0] * 20
    for woken in ([500.0], [250.0, 500.0], [250.0, 500.0, 500.0]):
        assert outlook([*rest, *woken], 10, band=False)[0][-1] == 500.0
    ramp = [100.0 + 5 * step for step in range(40)]
    assert outlook([*rest, *ramp], 10, band=False)[0][-1] > ramp[-1] + 15


def test_a_load_is_steady_since_it_last_was_far_from_what_it_is():
    assert steady_windows([500.0, 100.0, 110.0, 90.0, 100.0]) == 4
    assert steady_windows([]) == 0


def checked(forecast, loads) -> Skill:
    skill = Skill()
    for at in range(1, len(loads)):
        skill = skill.checked(forecast(loads[at - 1]), loads[: at + 1])
    return skill


def test_a_forecast_of_noise_is_found_out_within_some_windows_and_an_honest_band_is_not():
    chance = random.Random(3)
    loads = [1000 + 5 * step for step in range(12)]
    assert checked(lambda load: [load * chance.uniform(0.3, 1.7) for _ in range(8)], loads).is_poor
    assert not checked(lambda load: [load * side for side in (0.95, 1.0, 1.05)], loads).is_poor


def test_without_a_forecast_the_load_stays_about_what_it_is():
    for for_long, least, most in ((False, 50.0, 150.0), (True, 100.0, 162.5)):
        paths = unforeseen(100.0, 5, for_long=for_long)
        assert (min(map(min, paths)), max(map(max, paths))) == (least, most)


def test_after_a_jump_paths_begin_at_the_new_load():
    assert after_jump([[10.0, 12.0], [8.0, 1.0]], level=10.0, newest=30.0) == [[30.0, 32.0], [28.0, 21.0]]
    assert after_jump([[10.0, 3.0]], level=10.0, newest=5.0) == [[5.0, 0.0]]
    assert after_jump([[10.0, 12.0]], level=10.0, newest=11.5) == [[10.0, 12.0]]


def test_what_followed_a_rest_is_not_expected_to_follow_a_load():
    day = [0.0] * 20 + [2000.0] * 80
    assert max(ends([*day, *[1000.0] * 5], steps=20)) < 1500
    assert max(ends([*day, *[0.0] * 5], steps=20)) > 1500
