"""Up and down, again and again (thesis 5.4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


@workload("cosine")
@dataclass(frozen=True, kw_only=True)
class Cosine:
    """A cosine that starts at its peak, with noise on every minute."""

    minutes: int = parameter(140, "length")
    period_minutes: float = parameter(60.0, "from peak to peak")
    low: float = parameter(200 / 2200, "load at the bottom")
    noise: float = parameter(100 / 2200, "largest deviation of a minute")

    absolute = False

    def __post_init__(self) -> None:
        require(self.minutes >= 1, f"minutes must be at least 1, got {self.minutes}")
        require(self.period_minutes > 0, f"period_minutes must be above 0, got {self.period_minutes}")
        require(0 <= self.low <= 1, f"low must be in [0, 1], got {self.low}")
        require(self.noise >= 0, f"noise must not be negative, got {self.noise}")

    def loads(self, random: np.random.Generator) -> Floats:
        minute = np.arange(self.minutes)
        swing = np.cos(2 * np.pi * minute / self.period_minutes)
        smooth = (1 + self.low) / 2 + (1 - self.low) / 2 * swing
        noisy: Floats = smooth + random.uniform(-self.noise, self.noise, self.minutes)
        return np.maximum(0.0, noisy)
