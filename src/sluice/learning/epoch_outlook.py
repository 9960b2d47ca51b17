"""What the sources will have to read, and how fast operators will be, epoch by epoch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluice.dataflow.numbers import LARGEST
from sluice.dataflow.rates import source_arrival_rate
from sluice.learning.forecast import EpochLoad, EpochState
from sluice.model import Learned, LoadForecast, Observation, OperatorMetrics
from sluice.model.learned import rounded

States = dict[str, EpochState]
"""Operator -> its epoch under way."""
Saved = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class EpochOutlook:
    """`horizon` epochs from the one under way; a forecast that is off by more than `max_error` is not used.

    Without one the present load, plus `band` times how much it usually changes, holds for all epochs.
    """

    epochs: EpochLoad
    horizon: int
    band: float
    max_error: float
    catch_up_s: float

    @property
    def speeds(self) -> EpochLoad:
        """What an operator does over what its profile says, forecast like the load; the slowest window counts."""
        return replace(self.epochs, worst=min)

    def seen_loads(self, observation: Observation, saved: Saved) -> tuple[States, bool]:
        """Of the sources after this window, and whether it is the first of a new epoch."""
        states, is_new = {}, False
        for name in observation.topology.sources:
            before = None if name not in saved else EpochState.model_validate(saved[name])
            rate = source_arrival_rate(observation.operators[name])
            if rate is not None:
                states[name] = self.epochs.seen(before, observation.time_s, min(rate, LARGEST))
                is_new |= before is None or states[name].index != before.index
            elif before is not None:
                states[name] = before
        return states, is_new

    def seen_speeds(self, time_s: float, factors: Mapping[str, float], saved: Saved) -> States:
        before = {name: EpochState.model_validate(data) for name, data in saved.items()}
        return {
            name: self.speeds.seen(before.get(name), time_s, min(factor, LARGEST)) for name, factor in factors.items()
        }

    def now(self, state: EpochState, metrics: OperatorMetrics) -> float:
        """What a source must read now: what arrives, and its backlog within `catch_up_s`."""
        rate = source_arrival_rate(metrics)
        return min((state.peak if rate is None else rate) + (metrics.lag or 0.0) / self.catch_up_s, LARGEST)

    def ahead(self, state: EpochState, now: float) -> list[float]:
        """Load of a source in every epoch, the first at least that of now."""
        if not self.epochs.trusts(state, self.max_error):
            return [now + self.band * state.learned.naive_deviation] * self.horizon
        first, *later = self.epochs.expected(state, self.horizon).high
        return [max(first, now), *later]

    def at_speed(self, load: list[float], state: EpochState | None, factor: float) -> list[float]:
        """Load of every epoch, larger where the operator is expected to be slower than now."""
        if state is None or not self.speeds.trusts(state, self.max_error):
            return load
        ahead = self.speeds.expected(state, len(load)).mean
        return [
            min(value * factor / speed, LARGEST) if speed > 0 else value
            for value, speed in zip(load, ahead, strict=True)
        ]

    def learned(self, states: Sequence[EpochState]) -> Learned:
        """The forecast of all sources together; their bands are added up, as if all were wrong the same way."""
        if not states or any(state.learned.error is None for state in states):
            return Learned()
        ahead = [self.epochs.expected(state, self.horizon) for state in states]
        first = newest_epoch(states)
        return Learned(
            forecast=LoadForecast(
                time_s=tuple((first + step + 0.5) * self.epochs.epoch_s for step in range(self.horizon)),
                mean=_added(one.mean for one in ahead),
                low=_added(one.low for one in ahead),
                high=_added(one.high for one in ahead),
            )
        )

    def words(self, states: Iterable[EpochState]) -> str:
        """Whether the forecast is used, and why not."""
        known = list(states)
        worst = worst_error(known)
        if worst is None:
            return "no forecast yet, reacts"
        if all(self.epochs.trusts(state, self.max_error) for state in known):
            return f"forecast off by {worst:.0%}"
        return f"forecast off by {worst:.0%}, above {self.max_error:.0%}: reacts"


def newest_epoch(states: Iterable[EpochState]) -> int:
    return max(state.index for state in states)


def worst_error(states: Iterable[EpochState]) -> float | None:
    """Of the sources' forecasts; null while none has been checked."""
    return max((error for state in states if (error := state.learned.error) is not None), default=None)


def _added(parts: Iterable[Sequence[float]]) -> tuple[float, ...]:
    return tuple(rounded(min(sum(values), LARGEST)) for values in zip(*parts, strict=True))
