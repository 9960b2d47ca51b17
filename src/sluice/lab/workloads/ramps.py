"""One way only: more and more, or less and less (thesis 5.4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


def _climb(minutes: int, peak: float, random: np.random.Generator) -> Floats:
    """From 0 to the peak in random steps."""
    steps = np.concatenate([[0.0], random.uniform(0.0, 1.0, minutes - 1)])
    climbed: Floats = peak * np.cumsum(steps) / steps.sum()
    return climbed


@workload("increasing")
@dataclass(frozen=True, kw_only=True)
class Increasing:
    """From nothing to the peak, in random steps."""

    minutes: int = parameter(140, "length")
    peak: float = parameter(2500 / 2200, "load at the end")

    absolute = False

    def __post_init__(self) -> None:
        require(self.minutes >= 2, f"minutes must be at least 2, got {self.minutes}")
        require(self.peak > 0, f"peak must be above 0, got {self.peak}")

    def loads(self, random: np.random.Generator) -> Floats:
        return _climb(self.minutes, self.peak, random)


@workload("decreasing")
@dataclass(frozen=True, kw_only=True)
class Decreasing:
    """From the peak to nothing, in random steps."""

    minutes: int = parameter(140, "length")
    peak: float = parameter(2500 / 2200, "load at the start")

    absolute = False

    def __post_init__(self) -> None:
        require(self.minutes >= 2, f"minutes must be at least 2, got {self.minutes}")
        require(self.peak > 0, f"peak must be above 0, got {self.peak}")

    def loads(self, random: np.random.Generator) -> Floats:
        return _climb(self.minutes, self.peak, random)[::-1].copy()
