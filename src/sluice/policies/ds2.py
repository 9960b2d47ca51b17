"""DS2: one pass over the graph gives every operator the instances that its part of the arriving load needs.

Kalavri et al., "Three steps is all you need" (OSDI 2018); thesis 4.3 and 6.7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluice.dataflow.numbers import listing, number, whole_instances
from sluice.dataflow.rates import Need, instances_needed, selectivities
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter


@policy("ds2")
@dataclass(frozen=True, kw_only=True)
class Ds2:
    """Instances for the arriving load, from true rates, in one pass along the graph.

    In topological order: target input = sum of the upstream targets times their selectivity on that edge, a
    source's target being its arrival rate; instances = target input / true input rate of one instance; times
    `over_provisioning`, rounded up once, at the end. The factor and the rounding are not passed downstream.
    Selectivity = true output rate / true input rate, or the ratio of counts where a true rate is unknown.

    An operator whose true rate is unknown (no input, busy unknown or 0) keeps its instances; the load passes
    through it by its selectivity in this window, else the last one seen. Without `catch_up_s` lag is ignored:
    that is DS2's known weakness (thesis 7.1.3), kept on purpose.
    """

    over_provisioning: float = parameter(1.2, "factor on the instances needed, applied before rounding up")
    warm_up: int = parameter(0, "windows ignored after the start and after every change of parallelism")
    activation: int = parameter(
        0, "windows in a row that must call for a change before it is recommended; the largest of them counts"
    )
    catch_up_s: float = parameter(
        0.0, "time in which lag should be drained, added to the target rate; 0 ignores lag as DS2 does (thesis 8.3)"
    )
    max_busy: float = parameter(
        1.0, "busy share an instance really reaches before it is backpressured; 1 as DS2 assumes (thesis 8.3)"
    )
    least_drop: int = parameter(2, "surplus instances before an operator shrinks; 2 is the authors' rule")

    def __post_init__(self) -> None:
        if not 0 < self.over_provisioning < float("inf"):
            raise ValueError(f"over_provisioning must be a positive number, got {self.over_provisioning}")
        if self.warm_up < 0 or self.activation < 0:
            raise ValueError(
                f"warm_up and activation must be 0 or more windows, got {self.warm_up} and {self.activation}"
            )
        if not 0 <= self.catch_up_s < float("inf"):
            raise ValueError(f"catch_up_s must be 0 (off) or more seconds, got {self.catch_up_s}")
        if not 0 < self.max_busy <= 1:
            raise ValueError(f"max_busy must be in (0, 1], got {self.max_busy}")
        if self.least_drop < 1:
            raise ValueError(f"least_drop must be at least 1, got {self.least_drop}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        seen = selectivities(observation)
        earlier = memory.get("selectivity", {})
        selectivity = {name: {**earlier.get(name, {}), **edges} for name, edges in seen.items()}
        windows = memory["windows"] + 1 if memory.get("parallelism") == now else 1
        kept: dict[str, Any] = {"selectivity": selectivity, "parallelism": now, "windows": windows, "pending": []}
        if windows <= self.warm_up:
            return Recommendation.hold(f"ds2: warming up, window {windows} of {self.warm_up} ignored"), kept

        needs = instances_needed(observation, selectivity, catch_up_s=self.catch_up_s, max_busy=self.max_busy)
        if all(need.instances is None for need in needs.values()):
            return Recommendation.hold(f"ds2: no true rate or no load known for any of {len(now)} operators"), kept
        after = {
            name: before if (n := needs[name].instances) is None else whole_instances(n * self.over_provisioning)
            for name, before in now.items()
        }
        if not worth_acting(now, after, self.least_drop):
            details = f"nothing grows or shrinks by {self.least_drop}: {self._explain(now, after, needs)}"
            return Recommendation.hold(f"ds2: {details}"), kept
        pending = [*(memory.get("pending", []) if windows > 1 else []), after]
        if len(pending) < self.activation:
            kept["pending"] = pending
            progress = f"change called for by {len(pending)} of {self.activation} windows in a row so far"
            return Recommendation.hold(f"ds2: {progress}"), kept
        after = {name: max(counts[name] for counts in pending) for name in after}
        carried = [name for name, edges in selectivity.items() if len(edges) > len(seen[name])]
        note = f"; selectivity as last seen at {listing(carried)}" if carried else ""
        return Recommendation(parallelism=after, reason=f"ds2: {self._explain(now, after, needs)}{note}"), kept

    def _explain(self, now: dict[str, int], after: dict[str, int], needs: dict[str, Need]) -> str:
        known = [name for name in after if needs[name].instances is not None]
        shown = [name for name in known if after[name] != now[name]] or known
        shown.sort(key=lambda name: (-abs(after[name] - now[name]), name))
        unknown = [name for name in after if needs[name].instances is None]
        suffix = f"; kept, rate or load unknown: {listing(unknown)}" if unknown else ""
        phrases = (self._phrase(name, now[name], after[name], needs[name]) for name in shown)
        return listing(phrases, of=len(shown)) + suffix

    def _phrase(self, name: str, before: int, after: int, need: Need) -> str:
        return (
            f"{name} {before} -> {after} for {number(need.target_rate or 0)} rec/s at "
            f"{number(need.per_instance_rate or 0)} each, times {number(self.over_provisioning)}"
        )


def worth_acting(now: dict[str, int], after: dict[str, int], least_drop: int) -> bool:
    """DS2 acts only if some operator grows, or shrinks by `least_drop` or more."""
    return any(after[name] > now[name] or after[name] <= now[name] - least_drop for name in after)
