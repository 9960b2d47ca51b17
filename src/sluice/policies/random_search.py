"""Random search: what a tuning method must beat (ContTune section 7.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluice.dataflow.provisioning import ProvisioningState, provisioning, same_load
from sluice.dataflow.rates import source_loads
from sluice.errors import needs_extra
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

with needs_extra("policy 'random-search'", "learning"):
    import numpy as np


@policy("random-search")
@dataclass(frozen=True, kw_only=True)
class RandomSearch:
    """Try random parallelisms at every new load, then keep the cheapest that kept up.

    The paper's version stops when it meets the optimum another method found; a policy has no such oracle, so this
    one stops after a number of trials.
    """

    trials: int = parameter(20, "configurations tried at every load level")
    max_parallelism: int = parameter(10, "largest parallelism of an operator")
    seed: int = parameter(0, "of the random choices")

    def __post_init__(self) -> None:
        for name in ("trials", "max_parallelism"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.seed < 0:
            raise ValueError(f"seed must be 0 or more, got {self.seed}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        loads = source_loads(observation)
        if loads is None:
            return Recommendation.hold(f"random search: load unknown, keeps its {_slots(now)} slots"), memory
        kept: dict[str, Any] = {"drawn": 0, **memory}
        if not same_load(memory.get("loads"), loads):
            kept |= {"loads": loads, "tried": 0, "best": None}
        state = provisioning(observation)
        if state.state is ProvisioningState.CATCHING_UP:
            return Recommendation.hold(f"random search: waits until the backlog is worked off, {state.why}"), kept
        if state.state is ProvisioningState.KEEPING_UP and (kept["best"] is None or _slots(now) < _slots(kept["best"])):
            kept["best"] = now
        if kept["tried"] < self.trials:
            rng = np.random.default_rng([self.seed, kept["drawn"]])
            drawn = dict(zip(now, rng.integers(1, self.max_parallelism + 1, len(now)).tolist(), strict=True))
            kept |= {"tried": kept["tried"] + 1, "drawn": kept["drawn"] + 1}
            return Recommendation(
                parallelism=drawn, reason=f"random search: trial {kept['tried']} of {self.trials}"
            ), kept
        best = kept["best"]
        if best is None or best.keys() != now.keys():
            largest = dict.fromkeys(now, self.max_parallelism)
            return Recommendation(
                parallelism=largest, reason=f"random search: none of {self.trials} trials kept up"
            ), kept
        if best == now:
            return Recommendation.hold(f"random search: {_slots(now)} slots are the fewest that kept up"), kept
        reason = f"random search: back to the {_slots(best)} slots that kept up"
        return Recommendation(parallelism=dict(best), reason=reason), kept


def _slots(parallelism: dict[str, int]) -> int:
    return sum(parallelism.values())
