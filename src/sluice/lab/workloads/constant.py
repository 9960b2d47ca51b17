"""The same load all the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


@workload("constant")
@dataclass(frozen=True, kw_only=True)
class Constant:
    """One load that never changes."""

    minutes: int = parameter(60, "length")
    load: float = parameter(1.0, "the load")

    absolute = False

    def __post_init__(self) -> None:
        require(self.minutes >= 1, f"minutes must be at least 1, got {self.minutes}")
        require(self.load >= 0, f"load must not be negative, got {self.load}")

    def loads(self, random: np.random.Generator) -> Floats:
        return np.full(self.minutes, self.load)
