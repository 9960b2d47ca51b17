"""No pattern to learn (thesis 5.4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


@workload("random")
@dataclass(frozen=True, kw_only=True)
class RandomWalk:
    """A random walk: every minute adds or takes away something."""

    minutes: int = parameter(140, "length")
    start: float = parameter(0.5, "load of the first minute")
    max_change: float = parameter(500 / 2200, "largest change from one minute to the next")
    peak: float = parameter(2500 / 2200, "load it never exceeds")

    absolute = False

    def __post_init__(self) -> None:
        require(self.minutes >= 1, f"minutes must be at least 1, got {self.minutes}")
        require(0 <= self.start <= self.peak, f"start must be between 0 and peak ({self.peak}), got {self.start}")
        require(self.max_change >= 0, f"max_change must not be negative, got {self.max_change}")

    def loads(self, random: np.random.Generator) -> Floats:
        changes = random.uniform(-self.max_change, self.max_change, self.minutes - 1)
        loads = np.empty(self.minutes)
        loads[0] = self.start
        for minute, change in enumerate(changes, start=1):
            loads[minute] = np.clip(loads[minute - 1] + change, 0.0, self.peak)
        return loads
