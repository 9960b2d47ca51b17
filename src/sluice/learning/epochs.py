"""A load that arrives window by window, seen epoch by epoch: its peak in each, and what to expect of the next.

The peak counts, not the mean: capacity for an epoch is chosen once and must carry its worst window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.learning.forecast import Forecast, Forecaster, ForecastState
from sluice.model.base import Count, Frozen, NonNegative

MOST_EPOCHS_AT_ONCE = 100
"""After a longer gap than this the pattern is taken up where it was left: nobody knows what happened meanwhile."""


class EpochState(Frozen):
    """The epoch under way, its peak so far, and what was learned from those before."""

    index: Count
    peak: NonNegative
    learned: ForecastState = ForecastState()


@dataclass(frozen=True, kw_only=True)
class EpochLoad:
    """Epochs of `epoch_s`, aligned to time 0; `forecaster` sees one value per epoch."""

    epoch_s: float
    forecaster: Forecaster

    def __post_init__(self) -> None:
        if not 0 < self.epoch_s < math.inf:
            raise ValueError(f"epoch_s must be above 0, got {self.epoch_s}")

    def seen(self, state: EpochState | None, time_s: float, rate: float) -> EpochState:
        """One window that ended at `time_s`. The first one of a new epoch closes the epoch before."""
        index = int(time_s / self.epoch_s)
        if state is None or index < state.index:
            return EpochState(index=index, peak=rate)
        if index == state.index:
            return state.model_copy(update={"peak": max(state.peak, rate)})
        passed = min(index - state.index, MOST_EPOCHS_AT_ONCE)
        learned = self.forecaster.learned([state.peak] * passed, state.learned)
        return EpochState(index=index, peak=rate, learned=learned)

    def expected(self, state: EpochState, epochs: int) -> Forecast:
        """Peaks of the epoch under way and of those after it."""
        return self.forecaster.forecast(state.learned, epochs)

    def trusts(self, state: EpochState, max_error: float) -> bool:
        """Whether recent forecasts were good enough to plan on: see `ForecastState.error`."""
        error = state.learned.error
        return error is not None and error <= max_error
