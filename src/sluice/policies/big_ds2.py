"""ContTune's Big phase followed by DS2: the baseline that shows what the Small phase adds (ContTune section 7.1)."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.dataflow.big_phase import raise_all
from sluice.dataflow.provisioning import ProvisioningState, interrupted, provisioning, same_load
from sluice.dataflow.rates import source_loads
from sluice.model import Observation, Recommendation
from sluice.policies.ds2 import Ds2
from sluice.protocol import Memory, policy
from sluice.registry import parameter


@policy("big-ds2")
@dataclass(frozen=True, kw_only=True)
class BigDs2:
    """Big phase while the job falls behind, DS2 as soon as it does not.

    If DS2 itself left the job too small, at a load under which it kept up before, DS2 goes on: its rates are the
    real ones, and DS2 would only reverse another Big phase.
    """

    over_provisioning: float = parameter(1.0, "DS2's factor on the instances needed")
    max_parallelism: int = parameter(90, "the Big phase stops doubling here")

    def __post_init__(self) -> None:
        Ds2(over_provisioning=self.over_provisioning)
        if self.max_parallelism < 1:
            raise ValueError(f"max_parallelism must be at least 1, got {self.max_parallelism}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        state = provisioning(observation)
        loads = source_loads(observation)
        p_max = max([*now.values(), memory.get("p_max", 1)])
        kept = {**memory, "p_max": p_max, "parallelism": now}
        if state.state is ProvisioningState.BEHIND and interrupted(observation, memory.get("parallelism")):
            return Recommendation.hold(f"big-ds2: {state.why}, in a window interrupted by the change"), kept
        if state.state is ProvisioningState.CATCHING_UP:
            return Recommendation.hold(f"big-ds2: waits until the backlog is worked off, {state.why}"), kept
        if state.state is ProvisioningState.BEHIND and not same_load(memory.get("loads"), loads):
            big = raise_all(now, p_max, max(self.max_parallelism, *now.values()))
            if big != now:
                kept["p_max"] = max(big.values())
                return Recommendation(parallelism=big, reason=f"big-ds2: all to {kept['p_max']}: {state.why}"), kept
        if state.state is ProvisioningState.KEEPING_UP:
            kept["loads"] = loads
        inner = Ds2(over_provisioning=self.over_provisioning)
        recommendation, kept["ds2"] = inner.decide(observation, memory.get("ds2", {}))
        return recommendation.model_copy(update={"reason": f"big-{recommendation.reason}"}), kept
