"""The forecaster on loads whose future is known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.learning.forecast import MOST_EPOCHS_AT_ONCE, EpochLoad, Forecaster, ForecastState

DAY = 24
LOAD = EpochLoad(epoch_s=60, forecaster=Forecaster())


def days(count, noise=0.0, seed=0):
    hours = np.arange(DAY * count)
    wave = 100 + 40 * np.sin(2 * np.pi * hours / DAY) + 15 * np.sin(4 * np.pi * hours / DAY)
    return wave * (1 + noise * np.random.default_rng(seed).standard_normal(len(hours)))


def test_a_pattern_seen_once_is_forecast_a_whole_season_ahead():
    load = days(3)
    state = Forecaster(season=DAY).learned(load[: 2 * DAY])
    assert Forecaster(season=DAY).forecast(state, DAY).mean == pytest.approx(load[2 * DAY :], rel=0.01)


def test_a_trend_without_a_season_is_followed():
    state = Forecaster(trend_gain=0.3).learned(np.arange(0, 1000, 10))
    first, second = Forecaster(trend_gain=0.3).forecast(state, 2).mean
    assert 990 < first < second


def test_the_season_beats_staying_where_we_are():
    state = Forecaster(season=DAY).learned(days(8, noise=0.05))
    assert state.error < 0.75 * state.naive_error


def test_errors_in_a_row_are_carried_on():
    """A day that is above the usual all along: the forecast rises with it before the level has caught up."""
    forecaster = Forecaster(season=DAY, level_gain=0.05)
    load = np.concatenate([days(5), days(1) + 30])
    errors = []
    state = forecaster.learned(load[: 5 * DAY])
    for value in load[5 * DAY :]:
        errors.append(value - forecaster.forecast(state, 1).mean[0])
        state = forecaster.update(state, value)
    assert abs(errors[6]) < abs(errors[0]) / 3


def test_the_band_covers_as_many_values_as_it_says():
    forecaster = Forecaster(season=DAY, z=1.64)
    load = days(60, noise=0.1)
    state = forecaster.learned(load[: 10 * DAY])
    below = []
    for value in load[10 * DAY :]:
        below.append(value <= forecaster.forecast(state, 1).high[0])
        state = forecaster.update(state, value)
    assert 0.91 < np.mean(below) < 0.98


def test_the_band_widens_with_the_distance():
    state = Forecaster(season=DAY).learned(days(5, noise=0.1))
    forecast = Forecaster(season=DAY).forecast(state, 10)
    assert forecast.high[9] - forecast.low[9] > forecast.high[0] - forecast.low[0] > 0


def test_the_error_grows_when_the_load_stops_following_the_pattern_and_recovers_after():
    forecaster = Forecaster(season=DAY, error_memory=0.8)
    calm = forecaster.learned(days(6, noise=0.01))
    chaos = forecaster.learned(np.random.default_rng(1).uniform(0, 400, DAY), calm)
    after = forecaster.learned(days(8, noise=0.01), chaos)
    assert calm.error < 0.03 < 0.4 < chaos.error
    assert after.error < 0.1


def test_nothing_known_is_forecast_as_nothing_with_no_error_claimed():
    state = ForecastState()
    assert Forecaster().forecast(state, 3).mean == (0, 0, 0)
    assert state.error is None
    assert state.naive_error is None


def test_the_first_value_is_the_first_forecast():
    assert Forecaster(season=DAY).forecast(Forecaster(season=DAY).learned([7.0]), 2).mean == (7.0, 7.0)


def test_state_survives_json_and_goes_on_alike():
    forecaster = Forecaster(season=DAY)
    load = days(4, noise=0.05)
    half = forecaster.learned(load[:50])
    revived = ForecastState.parse(json.loads(json.dumps(half.to_data())), "forecast")
    assert forecaster.learned(load[50:], revived) == forecaster.learned(load)


@settings(max_examples=60)
@given(
    st.lists(st.floats(0, 1e9), min_size=1, max_size=60),
    st.sampled_from([0, 2, 7]),
)
def test_any_load_gives_a_finite_ordered_forecast(load, season):
    forecaster = Forecaster(season=season)
    forecast = forecaster.forecast(forecaster.learned(load), 12)
    for low, mean, high in zip(forecast.low, forecast.mean, forecast.high, strict=True):
        assert 0 <= low <= mean <= high < float("inf")


@pytest.mark.parametrize("settings_", [{"season": 1}, {"season": -4}, {"damping": 1.0}, {"z": -1.0}])
def test_impossible_settings_are_refused(settings_):
    with pytest.raises(ValueError, match="got"):
        Forecaster(**settings_)


def test_a_load_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="nan"):
        Forecaster().update(ForecastState(), float("nan"))


def after(*windows):
    state = None
    for time_s, rate in windows:
        state = LOAD.seen(state, time_s, rate)
    return state


@pytest.mark.parametrize(
    ("story", "windows", "index", "peak", "learned"),
    [
        ("the first window", [(15, 5)], 0, 5, 0),
        ("the peak of an epoch counts", [(15, 5), (30, 9), (45, 7)], 0, 9, 0),
        ("a new epoch closes the one before", [(15, 5), (30, 9), (60, 2)], 1, 2, 1),
        ("epochs nobody saw are taken to be like the last", [(15, 5), (200, 2)], 3, 2, 3),
        ("a long gap is not filled", [(15, 5), (1e9, 2)], 16666666, 2, MOST_EPOCHS_AT_ONCE),
        ("time that runs backwards starts anew", [(600, 5), (15, 2)], 0, 2, 0),
    ],
)
def test_windows_become_epochs(story, windows, index, peak, learned):
    state = after(*windows)
    assert (state.index, state.peak, state.learned.count) == (index, peak, learned), story


def test_what_is_expected_is_the_peak_of_the_epoch_under_way():
    state = after((15, 100), (45, 120), (60, 110))
    assert LOAD.expected(state, 2).mean == (120, 120)


def test_trust_needs_a_forecast_that_was_tested():
    assert not LOAD.trusts(after((15, 100)), 0.5)
    assert LOAD.trusts(after(*((60 * epoch, 100) for epoch in range(5))), 0.1)


def test_an_epoch_has_a_length():
    with pytest.raises(ValueError, match="got 0"):
        EpochLoad(epoch_s=0, forecaster=Forecaster())
