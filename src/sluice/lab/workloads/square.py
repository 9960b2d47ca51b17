"""Two loads in turn (Dragster, section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


@workload("square")
@dataclass(frozen=True, kw_only=True)
class Square:
    """High, low, high, low: a step every so many minutes."""

    phase_minutes: int = parameter(200, "length of one phase")
    phases: int = parameter(5, "how many phases")
    high: float = parameter(1.0, "load of the first phase")
    low: float = parameter(0.5, "load of the second")

    absolute = False

    def __post_init__(self) -> None:
        require(self.phase_minutes >= 1, f"phase_minutes must be at least 1, got {self.phase_minutes}")
        require(self.phases >= 1, f"phases must be at least 1, got {self.phases}")
        require(self.high >= 0 and self.low >= 0, f"loads must not be negative, got {self.high} and {self.low}")

    def loads(self, random: np.random.Generator) -> Floats:
        phases = [self.high if phase % 2 == 0 else self.low for phase in range(self.phases)]
        return np.repeat(phases, self.phase_minutes)
