"""Every load level in some order, twice (ContTune, section 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import Floats, require, workload
from sluice.registry import parameter


@workload("permutation")
@dataclass(frozen=True, kw_only=True)
class Permutation:
    """The levels 1..n in an order the seed chooses, the whole sequence several times over."""

    levels: int = parameter(10, "number of load levels; level k has the load k/levels")
    rounds: int = parameter(2, "how often the sequence is run")
    level_minutes: int = parameter(10, "how long a level lasts")

    absolute = False

    def __post_init__(self) -> None:
        for name in ("levels", "rounds", "level_minutes"):
            require(getattr(self, name) >= 1, f"{name} must be at least 1, got {getattr(self, name)}")

    def loads(self, random: np.random.Generator) -> Floats:
        order = random.permutation(np.arange(1, self.levels + 1)) / self.levels
        return np.repeat(np.tile(order, self.rounds), self.level_minutes)
