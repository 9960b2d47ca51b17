"""Policies that are shown something else than there is: what they rely on, broken on purpose."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from unittest.mock import patch

from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, Policy, decides_during_cooldown

AS_IT_IS, SLOW_SINK = "as it is", "slow sink"
CONDITIONS = (AS_IT_IS, "forecast is noise", "capacities twice", "capacities half", "metrics missing", SLOW_SINK)
MISSING = 0.3
OPTIONAL = [name for name in OperatorMetrics.model_fields if name != "parallelism"]


@dataclass(frozen=True)
class Distorted:
    """Shows a policy something else than there is."""

    inner: Policy
    condition: str

    @property
    def decides_during_cooldown(self) -> bool:
        return decides_during_cooldown(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        if self.condition == "forecast is noise":
            with patch("sluice.policies.sluice.outlook", _noise):
                return self.inner.decide(observation, memory)
        return self.inner.decide(_distorted(observation, self.condition), memory)


def _noise(past: Sequence[float], steps: int, **_: bool) -> list[list[float]]:
    chance = random.Random(repr(past[-1]))
    return [[past[-1] * chance.uniform(0.3, 1.7) for _ in range(steps)] for _ in range(8)]


def _distorted(observation: Observation, condition: str) -> Observation:
    operators = {}
    for name, metrics in observation.operators.items():
        changed: dict[str, float | None] = {}
        if condition.startswith("capacities") and metrics.busy:
            # who computes input / busy is wrong by this factor
            factor = 2.0 if condition == "capacities twice" else 0.5
            busy = min(1.0, metrics.busy / factor)
            true = None if metrics.input_rate is None else metrics.input_rate / busy
            changed = {"busy": busy, "true_input_rate": true, "idle": None}
        if condition == "metrics missing":
            chance = random.Random(f"{observation.time_s} {name}")
            changed = {metric: None for metric in OPTIONAL if chance.random() < MISSING}
        operators[name] = metrics.model_copy(update=changed)
    return observation.model_copy(update={"operators": operators})
