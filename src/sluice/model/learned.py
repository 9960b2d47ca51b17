"""What a policy has learned, in a form that can be drawn: capacity by parallelism, and the load to come."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.model.base import Frozen, Name, NonNegative, Parallelism

POINTS = 12
"""A curve has at most so many: journals keep one per operator and cycle."""


class Band(Frozen):
    """An expected value and what it may be instead, one of each per point."""

    mean: tuple[NonNegative, ...]
    low: tuple[NonNegative, ...]
    high: tuple[NonNegative, ...]

    def _check(self, points: int) -> None:
        if {len(self.mean), len(self.low), len(self.high)} != {points}:
            raise ValueError(f"mean, low and high need {points} values each, one per point")


class LearnedCurve(Band):
    """Records/s that an operator is believed to read, by parallelism."""

    parallelism: tuple[Parallelism, ...]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        self._check(len(self.parallelism))
        return self


class LoadForecast(Band):
    """Records/s expected to arrive at all sources together, by engine time."""

    time_s: tuple[NonNegative, ...]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        self._check(len(self.time_s))
        return self


class Learned(Frozen):
    """Curves by operator and a forecast; what a policy does not learn is left out."""

    curves: dict[Name, LearnedCurve] = Field(default_factory=dict)
    forecast: LoadForecast | None = None


def curve_points(most: int) -> list[int]:
    """At most `POINTS` parallelisms from 1 to `most`, evenly spread, both ends among them."""
    step = max(1, -(-(most - 1) // (POINTS - 1)))
    return sorted({*range(1, most + 1, step), most})


def capacity_curve(parallelism: Sequence[int], mean: Sequence[float], deviation: Sequence[float]) -> LearnedCurve:
    """From expected capacities and their standard deviations; the band is two of them wide to either side."""
    pairs = list(zip(mean, deviation, strict=True))
    return LearnedCurve(
        parallelism=tuple(parallelism),
        mean=tuple(rounded(value) for value, _ in pairs),
        low=tuple(rounded(value - 2 * spread) for value, spread in pairs),
        high=tuple(rounded(value + 2 * spread) for value, spread in pairs),
    )


def rounded(value: float) -> float:
    """Five significant digits, not below 0: more than a picture shows."""
    return max(0.0, float(f"{float(value):.5g}"))
