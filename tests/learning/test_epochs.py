from __future__ import annotations

import pytest

from sluice.learning.epochs import MOST_EPOCHS_AT_ONCE, EpochLoad
from sluice.learning.forecast import Forecaster

LOAD = EpochLoad(epoch_s=60, forecaster=Forecaster())


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
