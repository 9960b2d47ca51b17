"""What load comes next: season, trend, and how far to believe it.

Additive Holt-Winters with a damped trend, and an autoregressive term for errors that come in a row:

    forecast(h) = level + (damping + … + damping^h) * trend + season[h] + phi^h * last error

Every value is first predicted, then learned; so the error is always that of real one-step forecasts. The band is
`z` standard deviations of those errors, widening with `h` as for simple smoothing. Pure: the state is data.

`EpochLoad` turns windows into the values that are forecast: one per epoch, its peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sluice.model.base import Count, Finite, Frozen, NonNegative

MOST_EPOCHS_AT_ONCE = 100
"""After a longer gap than this the pattern is taken up where it was left: nobody knows what happened meanwhile."""


class ForecastState(Frozen):
    """What was learned from the values so far. The first season is only collected, then becomes the pattern."""

    count: Count = 0
    level: Finite = 0.0
    trend: Finite = 0.0
    pattern: tuple[Finite, ...] = ()
    last_error: Finite = 0.0
    error_product: Finite = 0.0
    error_square: NonNegative = 0.0
    miss_square: NonNegative = 0.0
    miss: NonNegative = 0.0
    naive_miss: NonNegative = 0.0
    size: NonNegative = 0.0
    last_value: Finite = 0.0

    @property
    def error(self) -> float | None:
        """Recent mean absolute one-step error relative to the recent mean value; null before two values."""
        return None if self.count < 2 or self.size == 0 else self.miss / self.size

    @property
    def naive_error(self) -> float | None:
        """The same for the forecast "as it is now": what any forecaster has to beat."""
        return None if self.count < 2 or self.size == 0 else self.naive_miss / self.size

    @property
    def naive_deviation(self) -> float:
        """Standard deviation of the change from one value to the next, if changes are normal: 1.25 mean absolute."""
        return math.sqrt(math.pi / 2) * self.naive_miss


class Forecast(Frozen):
    """Expected values and the band around them, next step first; never negative."""

    mean: tuple[NonNegative, ...]
    low: tuple[NonNegative, ...]
    high: tuple[NonNegative, ...]


@dataclass(frozen=True, kw_only=True)
class Forecaster:
    """`season` is the number of values after which the pattern repeats; 0 means there is none."""

    season: int = 0
    level_gain: float = 0.2
    trend_gain: float = 0.05
    season_gain: float = 0.3
    damping: float = 0.9
    error_memory: float = 0.95
    z: float = 1.64

    def __post_init__(self) -> None:
        if self.season < 0 or self.season == 1:
            raise ValueError(f"season must be 0 (none) or at least 2 values, got {self.season}")
        for name in ("level_gain", "trend_gain", "season_gain", "damping", "error_memory"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1), got {value}")
        if not 0 <= self.z < math.inf:
            raise ValueError(f"z must not be negative, got {self.z}")

    def learned(self, values: Iterable[float], state: ForecastState | None = None) -> ForecastState:
        state = state or ForecastState()
        for value in values:
            state = self.update(state, float(value))
        return state

    def update(self, state: ForecastState, value: float) -> ForecastState:
        """Compare the value with what was expected of it, then learn it."""
        if not math.isfinite(value):
            raise ValueError(f"a load must be a finite number, got {value}")
        if state.count == 0:
            return ForecastState(count=1, level=value, last_value=value, pattern=self._collected(state, value))
        scored = self._score(state, value)
        season = self._season(state, 1)
        error = value - (state.level + self.damping * state.trend + season)
        level = state.level + self.damping * state.trend + self.level_gain * error
        trend = self.damping * state.trend + self.trend_gain * self.level_gain * error
        learned = scored.model_copy(
            update={
                "count": state.count + 1,
                "level": level,
                "trend": trend,
                "last_error": error,
                "error_product": _decayed(state.error_product, error * state.last_error, self.error_memory),
                "error_square": _decayed(state.error_square, error**2, self.error_memory),
                "last_value": value,
                "pattern": self._collected(state, value),
            }
        )
        if self.season and state.count >= self.season:
            place = state.count % self.season
            pattern = list(state.pattern)
            pattern[place] = season + self.season_gain * (error - self.level_gain * error)
            return learned.model_copy(update={"pattern": tuple(pattern)})
        if self.season and learned.count == self.season:
            return self._first_pattern(learned)
        return learned

    def forecast(self, state: ForecastState, steps: int) -> Forecast:
        mean = [self._expected(state, step) for step in range(1, steps + 1)]
        deviation = math.sqrt(state.miss_square)
        widths = [self.z * deviation * math.sqrt(1 + (step - 1) * self.level_gain**2) for step in range(1, steps + 1)]
        return Forecast(
            mean=tuple(max(0.0, value) for value in mean),
            low=tuple(max(0.0, value - width) for value, width in zip(mean, widths, strict=True)),
            high=tuple(max(0.0, value + width) for value, width in zip(mean, widths, strict=True)),
        )

    def has_seen_a_season(self, state: ForecastState) -> bool:
        return state.count >= max(2, self.season)

    def _expected(self, state: ForecastState, step: int) -> float:
        damped = sum(self.damping**k for k in range(1, step + 1))
        return state.level + damped * state.trend + self._season(state, step) + _phi(state) ** step * state.last_error

    def _season(self, state: ForecastState, step: int) -> float:
        if not self.season or state.count < self.season:
            return 0.0
        return state.pattern[(state.count + step - 1) % self.season]

    def _score(self, state: ForecastState, value: float) -> ForecastState:
        miss = value - max(0.0, self._expected(state, 1))
        # the first errors count in full: a plain mean until the memory is filled
        memory = min(self.error_memory, 1 - 1 / state.count)
        return state.model_copy(
            update={
                "miss": _decayed(state.miss, abs(miss), memory),
                "miss_square": _decayed(state.miss_square, miss**2, memory),
                "naive_miss": _decayed(state.naive_miss, abs(value - state.last_value), memory),
                "size": _decayed(state.size, abs(value), memory),
            }
        )

    def _collected(self, state: ForecastState, value: float) -> tuple[float, ...]:
        return (*state.pattern, value) if state.count < self.season else state.pattern

    def _first_pattern(self, state: ForecastState) -> ForecastState:
        """The first season less its mean; errors made without it say nothing about those to come."""
        mean = math.fsum(state.pattern) / len(state.pattern)
        return state.model_copy(
            update={
                "level": mean,
                "trend": 0.0,
                "pattern": tuple(value - mean for value in state.pattern),
                "last_error": 0.0,
                "error_product": 0.0,
                "error_square": 0.0,
            }
        )


class EpochState(Frozen):
    """The epoch under way, its peak so far, and what was learned from those before."""

    index: Count
    peak: NonNegative
    learned: ForecastState = ForecastState()


@dataclass(frozen=True, kw_only=True)
class EpochLoad:
    """A load that arrives window by window, forecast by epochs of `epoch_s`, aligned to time 0.

    The peak of an epoch counts, not its mean: capacity for an epoch is chosen once and must carry its worst window.
    For what should be large, such as an operator's speed, the `worst` window is the least.
    """

    epoch_s: float
    forecaster: Forecaster
    worst: Callable[[float, float], float] = max

    def __post_init__(self) -> None:
        if not 0 < self.epoch_s < math.inf:
            raise ValueError(f"epoch_s must be above 0, got {self.epoch_s}")

    def seen(self, state: EpochState | None, time_s: float, rate: float) -> EpochState:
        """One window that ended at `time_s`. The first one of a new epoch closes the epoch before."""
        index = int(time_s / self.epoch_s)
        if state is None or index < state.index:
            return EpochState(index=index, peak=rate)
        if index == state.index:
            return state.model_copy(update={"peak": self.worst(state.peak, rate)})
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


def _phi(state: ForecastState) -> float:
    """Lag-one autocorrelation of the errors, kept away from 1 and from below 0."""
    if state.error_square <= 0:
        return 0.0
    return min(0.9, max(0.0, state.error_product / state.error_square))


def _decayed(old: float, new: float, memory: float) -> float:
    return memory * old + (1 - memory) * new
