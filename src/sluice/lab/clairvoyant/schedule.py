"""A plan made in advance, followed like a policy: what the clairvoyant planner promises, run on the engine."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.lab.clairvoyant.planner import ClairvoyantPlan
from sluice.model import Observation, Recommendation
from sluice.policy import Memory


@dataclass(frozen=True)
class Schedule:
    """Holds until the next step of the plan is due."""

    plan: ClairvoyantPlan

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        due = [rung for time_s, rung in self.plan.steps if time_s <= observation.time_s]
        wish = dict(due[-1].parallelism)
        if wish == observation.parallelism:
            return Recommendation.hold(f"planned: {due[-1].slots} slots"), memory
        reason = f"planned: {due[-1].slots} slots, which carry {due[-1].rate:,.0f} records/s"
        return Recommendation(parallelism=wish, reason=reason), memory
