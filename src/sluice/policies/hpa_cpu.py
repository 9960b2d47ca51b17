"""HPA-CPU: the horizontal pod autoscaler on CPU use, per operator (thesis 4.4 and 6.7.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sluice.dataflow.hpa import Behaviour, Reading, decide, overload_where_saturated
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter


@policy("hpa-cpu")
@dataclass(frozen=True, kw_only=True)
class HpaCpu:
    """Keep every operator's CPU use near a target: `ceil(p * cpu / target)`, the largest of the window.

    CPU use saturates near 0.9, so a target at or above that only ever scales down (thesis 7.1.5). With
    `saturates_at` a saturated reading is multiplied by arriving over consumed records at the sources. An operator
    whose CPU use is unknown keeps its instances, as on Kubernetes.
    """

    target: float = parameter(0.7, "CPU use to aim for")
    window_s: float = parameter(300.0, "the largest recommendation of this time counts")
    tolerance: float = parameter(0.0, "no change while metric / target is within 1 +- this; Kubernetes has 0.1")
    step_policies: bool = parameter(
        False, "as Kubernetes: at most 4 instances or twice as many per 15 s, and only scaling down waits"
    )
    saturates_at: float = parameter(0.0, "use from which the metric cannot show more load; 0 is off (thesis 8.3)")

    decides_during_cooldown: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise ValueError(f"target must be in (0, 1], got {self.target}")
        if not 0 <= self.saturates_at <= 1:
            raise ValueError(f"saturates_at must be in [0, 1], got {self.saturates_at}")
        _ = self._behaviour

    @property
    def _behaviour(self) -> Behaviour:
        return Behaviour(window_s=self.window_s, tolerance=self.tolerance, step_policies=self.step_policies)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        overload = overload_where_saturated(observation, self.saturates_at)
        readings = {
            name: (Reading("cpu", metrics.cpu, self.target, overload(metrics.cpu)),)
            for name, metrics in observation.operators.items()
        }
        return decide("hpa-cpu", observation, readings, self._behaviour, memory)
