"""Never scales: the baseline that shows what scaling is worth."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, policy


@policy("static")
@dataclass(frozen=True, kw_only=True)
class Static:
    """Keep every operator as it was started."""

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        slots = sum(observation.parallelism.values())
        return Recommendation.hold(f"static: keeps its {slots} slots"), memory
