"""Steps to settle on (thesis 5.4.3, after Kalavri et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


@workload("convergence")
@dataclass(frozen=True, kw_only=True)
class Convergence:
    """Nothing, then a high load, then a part of it: how long does a policy take to settle?"""

    quiet_minutes: int = parameter(10, "without any load")
    high_minutes: int = parameter(40, "at the high load")
    low_minutes: int = parameter(40, "at the lower load")
    high: float = parameter(2000 / 2200, "the high load")
    low: float = parameter(1000 / 2200, "the lower load")

    absolute = False

    def __post_init__(self) -> None:
        for name in ("quiet_minutes", "high_minutes", "low_minutes", "high", "low"):
            require(getattr(self, name) >= 0, f"{name} must not be negative, got {getattr(self, name)}")
        require(self.quiet_minutes + self.high_minutes + self.low_minutes > 0, "a workload needs at least one minute")

    def loads(self, random: np.random.Generator) -> Floats:
        return np.repeat([0.0, self.high, self.low], [self.quiet_minutes, self.high_minutes, self.low_minutes])
