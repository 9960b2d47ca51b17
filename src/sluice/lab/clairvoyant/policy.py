"""A clairvoyant plan followed like a policy, so that an engine can run it."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.lab.clairvoyant.planner import ClairvoyantPlan
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory


@dataclass(frozen=True)
class ClairvoyantPolicy:
    """Holds until the next step of the plan is due."""

    plan: ClairvoyantPlan

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        due = [configuration for time_s, configuration in self.plan.steps if time_s <= observation.time_s][-1]
        if due.parallelism == observation.parallelism:
            return Recommendation.hold(f"planned: {due.slots} slots"), memory
        reason = f"planned: {due.slots} slots, which carry {due.rate:,.0f} records/s"
        return Recommendation(parallelism=dict(due.parallelism), reason=reason), memory
