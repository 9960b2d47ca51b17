"""A chain of operators in steady state, worked out by hand: what a policy would see at a load, with a parallelism.

No queues in between but the source's topic, no noise unless asked for: whatever a test finds is the policy's doing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sluice.model import Observation, Recommendation
from sluice.protocol import EMPTY_MEMORY, Memory, Policy

Curve = Callable[[int], float]


@dataclass
class Chain:
    """Curves give the input capacity of each operator, the first one is the source."""

    curves: Mapping[str, Curve]
    load: float
    selectivity: Mapping[str, float] = field(default_factory=dict)
    interval_s: float = 600.0
    noise: float = 0.0
    seed: int = 0
    parallelism: dict[str, int] = field(default_factory=dict)
    memory: Memory = field(default_factory=lambda: EMPTY_MEMORY)
    reconfigurations: int = 0
    time_s: float = 0.0
    decisions: list[Recommendation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parallelism = dict.fromkeys(self.curves, 1) | self.parallelism
        self._random = np.random.default_rng(self.seed)

    def demands(self) -> dict[str, float]:
        """What every operator would receive if nothing were too small."""
        flow, found = self.load, {}
        for name in self.curves:
            found[name] = flow
            flow *= self.selectivity.get(name, 1.0)
        return found

    def share(self) -> float:
        """Of the load that gets through the tightest operator."""
        return min(1.0, *(self.curves[n](self.parallelism[n]) / d for n, d in self.demands().items()))

    def observe(self) -> Observation:
        self.time_s += self.interval_s
        share, demands = self.share(), self.demands()
        names = list(self.curves)
        operators: dict[str, Any] = {}
        for name in names:
            rate = demands[name] * share
            speed = self.curves[name](self.parallelism[name]) * float(
                np.exp(self.noise * self._random.standard_normal())
            )
            busy = min(1.0, rate / speed)
            operators[name] = {
                "parallelism": self.parallelism[name],
                "input_rate": rate,
                "output_rate": rate * self.selectivity.get(name, 1.0),
                "true_input_rate": rate / busy,
                "true_output_rate": rate / busy * self.selectivity.get(name, 1.0),
                "busy": busy,
                "backpressure": 0.0,
                "lag": 0.0,
                "lag_rate": 0.0,
            }
        lost = self.load * (1 - share)
        operators[names[0]] |= {"arrival_rate": self.load, "lag_rate": lost, "lag": lost * self.interval_s}
        return Observation.model_validate(
            {
                "time_s": self.time_s,
                "interval_s": self.interval_s,
                "operators": operators,
                "edges": list(itertools.pairwise(names)),
            }
        )

    def step(self, policy: Policy) -> Recommendation:
        recommendation, self.memory = policy.decide(self.observe(), self.memory)
        target = self.parallelism | recommendation.parallelism
        self.reconfigurations += target != self.parallelism
        self.parallelism = target
        self.decisions.append(recommendation)
        return recommendation

    def settle(self, policy: Policy, most: int = 40) -> dict[str, int]:
        """Step until the policy holds while nothing falls behind; fails if it never does."""
        for _ in range(most):
            if self.step(policy).is_hold and self.share() == 1.0:
                return self.parallelism
        raise AssertionError(f"not settled after {most} steps: {[d.reason for d in self.decisions[-4:]]}")

    def optimum(self, most: int = 200) -> dict[str, int]:
        return {
            name: next(p for p in range(1, most) if self.curves[name](p) >= demand)
            for name, demand in self.demands().items()
        }
