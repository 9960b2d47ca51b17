"""Quiet, with sudden peaks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


@workload("spikes")
@dataclass(frozen=True, kw_only=True)
class Spikes:
    """A base load with short peaks at random times."""

    minutes: int = parameter(140, "length")
    base: float = parameter(0.3, "load between spikes")
    peak: float = parameter(1.0, "load in a spike")
    spike_minutes: int = parameter(4, "length of a spike")
    mean_gap_minutes: float = parameter(20.0, "mean time between two spikes")

    absolute = False

    def __post_init__(self) -> None:
        require(self.minutes >= 1, f"minutes must be at least 1, got {self.minutes}")
        require(self.spike_minutes >= 1, f"spike_minutes must be at least 1, got {self.spike_minutes}")
        require(self.mean_gap_minutes > 0, f"mean_gap_minutes must be above 0, got {self.mean_gap_minutes}")
        require(0 <= self.base <= self.peak, f"base must be between 0 and peak ({self.peak}), got {self.base}")

    def loads(self, random: np.random.Generator) -> Floats:
        loads = np.full(self.minutes, self.base)
        start = random.exponential(self.mean_gap_minutes)
        while start < self.minutes:
            first = int(start)
            loads[first : first + self.spike_minutes] = self.peak
            start += self.spike_minutes + random.exponential(self.mean_gap_minutes)
        return loads
