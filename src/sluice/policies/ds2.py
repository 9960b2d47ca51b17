"""DS2: one pass over the graph gives every operator the instances its share of the arriving load needs.

Kalavri et al., "Three steps is all you need" (OSDI 2018); thesis 4.3 and 6.7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluice.dataflow.bottleneck import topic_readers
from sluice.dataflow.numbers import LARGEST, known_sum, listing, number, ratio, whole_instances
from sluice.dataflow.rates import EdgeValues, selectivities, source_arrival_rate
from sluice.model import Observation, Recommendation
from sluice.policy import Memory, policy
from sluice.registry import parameter


@dataclass(frozen=True)
class Need:
    """What one operator must take in, and how many instances that takes before the factor and the rounding."""

    target_rate: float | None
    per_instance_rate: float | None
    instances: float | None


@policy("ds2")
@dataclass(frozen=True, kw_only=True)
class Ds2:
    """Instances for the arriving load, from true rates, in one pass along the graph.

    In topological order: target input = sum of the upstream targets times their selectivity on that edge, a
    source's target being its arrival rate; instances = target input / true input rate of one instance; times
    `over_provisioning`, rounded up once, at the end. The factor and the rounding are not passed downstream.

    An operator whose true rate is unknown (no input, busy unknown or 0) keeps its instances; the load passes
    through it by its selectivity in this window, else the last one seen. Without `catch_up_s` lag is ignored:
    that is DS2's known weakness (thesis 7.1.3), kept on purpose.
    """

    over_provisioning: float = parameter(1.2, "factor on the instances needed, applied before rounding up")
    warm_up: int = parameter(0, "windows ignored after the start and after every change of parallelism")
    activation: int = parameter(
        0, "windows in a row that must ask for a change before it is made; the largest wish among them counts"
    )
    catch_up_s: float = parameter(
        0.0, "time in which lag is to be drained, added to the target rate; 0 ignores lag as DS2 does (thesis 8.3)"
    )
    max_busy: float = parameter(
        1.0, "busy share an instance really reaches before it is backpressured; 1 as DS2 assumes (thesis 8.3)"
    )
    least_drop: int = parameter(2, "instances too many before an operator shrinks; 2 is the authors' rule")

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
        selectivity = {name: {**memory.get("selectivity", {}).get(name, {}), **found} for name, found in seen.items()}
        windows = memory["windows"] + 1 if memory.get("parallelism") == now else 1
        kept: dict[str, Any] = {"selectivity": selectivity, "parallelism": now, "windows": windows, "wishes": []}
        if windows <= self.warm_up:
            return Recommendation.hold(f"ds2: warming up, window {windows} of {self.warm_up} ignored"), kept

        needs = instances_needed(observation, selectivity, catch_up_s=self.catch_up_s, max_busy=self.max_busy)
        if all(need.instances is None for need in needs.values()):
            return Recommendation.hold(f"ds2: no true rate or no load known for any of {len(now)} operators"), kept
        wish = {
            name: before if (n := needs[name].instances) is None else whole_instances(n * self.over_provisioning)
            for name, before in now.items()
        }
        if not worth_acting(now, wish, self.least_drop):
            told = f"nothing grows or shrinks by {self.least_drop}: {self._explain(now, wish, needs)}"
            return Recommendation.hold(f"ds2: {told}"), kept
        wishes = [*(memory["wishes"] if windows > 1 else []), wish]
        if len(wishes) < self.activation:
            kept |= {"wishes": wishes}
            return Recommendation.hold(
                f"ds2: change wished {len(wishes)} of {self.activation} times in a row so far"
            ), kept
        wish = {name: max(one[name] for one in wishes) for name in wish}
        passed = [name for name, found in selectivity.items() if len(found) > len(seen[name])]
        note = f"; load passed on as last seen at {listing(passed)}" if passed else ""
        return Recommendation(parallelism=wish, reason=f"ds2: {self._explain(now, wish, needs)}{note}"), kept

    def _explain(self, now: dict[str, int], wish: dict[str, int], needs: dict[str, Need]) -> str:
        known = [name for name in wish if needs[name].instances is not None]
        told = [name for name in known if wish[name] != now[name]] or known
        told.sort(key=lambda name: (-abs(wish[name] - now[name]), name))
        unknown = [name for name in wish if needs[name].instances is None]
        kept = f"; kept, rate or load unknown: {listing(unknown)}" if unknown else ""
        sentences = (self._sentence(name, now[name], wish[name], needs[name]) for name in told)
        return listing(sentences, of=len(told)) + kept

    def _sentence(self, name: str, before: int, after: int, need: Need) -> str:
        return (
            f"{name} {before} -> {after} for {number(need.target_rate or 0)} rec/s at "
            f"{number(need.per_instance_rate or 0)} each, times {number(self.over_provisioning)}"
        )


def instances_needed(
    observation: Observation, selectivity: EdgeValues, *, catch_up_s: float = 0.0, max_busy: float = 1.0
) -> dict[str, Need]:
    """DS2's traversal: exact real numbers, neither rounded nor multiplied by a factor."""
    targets = target_rates(observation, selectivity, catch_up_s)
    needs: dict[str, Need] = {}
    for name, metrics in observation.operators.items():
        rate = metrics.per_instance_rate()
        reached = None if rate is None else rate * max_busy
        needs[name] = Need(targets[name], reached, ratio(targets[name], reached))
    return needs


def target_rates(observation: Observation, selectivity: EdgeValues, catch_up_s: float = 0.0) -> dict[str, float | None]:
    """What every operator must take in, records/s; null downstream of whatever is unknown.

    With `catch_up_s` the lag of every topic is added to its reader's target, and so passed on downstream.
    """
    topology = observation.topology
    hurried = topic_readers(observation) if catch_up_s else {}
    targets: dict[str, float | None] = {}
    for name in topology.order:
        if topology.is_source(name):
            target = source_arrival_rate(observation.operators[name])
        else:
            target = known_sum(
                _product(targets[upstream], selectivity[upstream].get(name)) for upstream in topology.predecessors[name]
            )
        if target is not None and name in hurried:
            target = min(target + (hurried[name].lag or 0.0) / catch_up_s, LARGEST)
        targets[name] = target
    return targets


def worth_acting(now: dict[str, int], wish: dict[str, int], least_drop: int) -> bool:
    """DS2 acts only if some operator grows, or shrinks by `least_drop` or more."""
    return any(wish[name] > now[name] or wish[name] <= now[name] - least_drop for name in wish)


def _product(target: float | None, selectivity: float | None) -> float | None:
    return None if target is None or selectivity is None else target * selectivity
