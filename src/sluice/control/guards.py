"""What turns a recommendation into a target (thesis 6.6.4): each guard says what it changed.

Order: over-provisioning factor, largest step per operator, min/max parallelism, one number for operators that share
their instances, fit into the slots, shortages of the cluster, cooldown. Sizes follow the parallelism.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluice.control.sharing import shared_parallelism
from sluice.control.state import Shortage
from sluice.model import Graph, InstanceMix, Observation, Recommendation, Target
from sluice.registry import parameter


@dataclass(frozen=True)
class GuardResult:
    """The target that is left of a recommendation. While `cooling` it is on record, but not in force."""

    target: Target
    notes: tuple[str, ...]
    cooling: bool = False


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a recommendation meets: the target in force, the job, what was observed, and the last action."""

    target: Target
    graph: Graph
    observation: Observation
    last_action_s: float | None = None
    shortages: Mapping[str, Shortage] = field(default_factory=dict)
    pinned: Mapping[str, int] = field(default_factory=dict)
    """Parallelism that a person has set: it takes the place of the policy's, and is bounded like it."""

    @property
    def time_s(self) -> float:
        return self.observation.time_s


@dataclass(frozen=True, kw_only=True)
class Guards:
    """Limits that hold for every policy; the defaults limit nothing but common sense."""

    over_provisioning: float = parameter(1.0, "factor on every recommendation, for policies without their own")
    max_step: int | None = parameter(None, "most instances an operator may gain in one action")
    min_parallelism: int = parameter(1, "fewest instances of an operator")
    max_parallelism: int | None = parameter(None, "most instances of an operator")
    max_slots: int | None = parameter(None, "slots of the whole job; larger recommendations are divided proportionally")
    cooldown_s: float = parameter(0.0, "time after a scaling action without another one")

    def __post_init__(self) -> None:
        if not (math.isfinite(self.over_provisioning) and self.over_provisioning > 0):
            raise ValueError(f"over_provisioning must be above 0, got {self.over_provisioning}")
        for name in ("max_step", "min_parallelism", "max_parallelism", "max_slots"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.max_parallelism is not None and self.max_parallelism < self.min_parallelism:
            raise ValueError(
                f"max_parallelism must be at least min_parallelism ({self.min_parallelism}), got {self.max_parallelism}"
            )
        if not self.cooldown_s >= 0:
            raise ValueError(f"cooldown_s must not be negative, got {self.cooldown_s}")

    def most_instances(self, operators: int) -> int | None:
        """Of one operator, the others at their fewest; null without a limit."""
        limits = [self.max_parallelism] if self.max_parallelism is not None else []
        if self.max_slots is not None:
            limits.append(max(1, self.max_slots - (operators - 1) * self.min_parallelism))
        return min(limits, default=None)

    def apply(self, recommendation: Recommendation, situation: Situation) -> GuardResult:
        """Guard one recommendation; operators it does not name keep their target."""
        current = situation.target
        due = _requested_again(situation)
        pinned = {name: count for name, count in situation.pinned.items() if name in current.parallelism}
        at_pins = all(current.parallelism[name] == count for name, count in pinned.items())
        if recommendation.is_hold and not due and at_pins:
            return GuardResult(current, ())
        notes: list[str] = []
        named = recommendation.parallelism.keys() | recommendation.sizes.keys()
        kept = _noted(
            current.parallelism,
            {name: count if name in named else due.get(name, count) for name, count in current.parallelism.items()},
            "requested again after a shortage",
            notes,
        )
        counts = {name: self._recommended(recommendation, name, count) for name, count in kept.items()}
        counts = self._over_provision(counts, named, notes)
        counts = _noted(counts, {**counts, **pinned}, "pinned by hand", notes)
        counts = self._limit_step(counts, current.parallelism, notes)
        counts = self._bound(counts, situation.graph, notes)
        if situation.graph.shared:
            if pinned:
                counts = dict.fromkeys(counts, max(counts[name] for name in pinned))
            else:
                counts = self._share(counts, situation, notes)
        counts = self._fit(counts, situation.graph, notes)
        counts = _without_shortages(counts, situation, notes)
        sizes = _fitted_sizes({**current.sizes, **recommendation.sizes}, counts, notes)
        shares = recommendation.shared_nodes if recommendation.sizes else current.shared_nodes
        unmoved = counts == current.parallelism and sizes == current.sizes and shares == current.shared_nodes
        placement = current.placement if unmoved else None
        target = Target(parallelism=counts, sizes=sizes, shared_nodes=shares, placement=placement)
        cooling_s = self.cooling_s(situation.time_s, situation.last_action_s)
        cooling = cooling_s > 0 and target != current
        if cooling:
            notes.append(f"cooldown: {cooling_s:g} of {self.cooldown_s:g} s left")
        return GuardResult(target, tuple(notes), cooling)

    def within(self, slots: int) -> Guards:
        """The same guards on a cluster that has only so many slots now."""
        return replace(self, max_slots=slots if self.max_slots is None else min(slots, self.max_slots))

    def fit(self, target: Target, graph: Graph) -> Target:
        """A target in force, divided to the slots there are; it loses its sizes and places if it has to shrink."""
        counts = self._fit(dict(target.parallelism), graph, [])
        return target if counts == target.parallelism else Target(parallelism=counts)

    def cooling_s(self, time_s: float, last_action_s: float | None) -> float:
        """What is left of the cooldown, 0 if there is none."""
        return 0.0 if last_action_s is None else max(0.0, last_action_s + self.cooldown_s - time_s)

    @staticmethod
    def _recommended(recommendation: Recommendation, name: str, current: int) -> int:
        if name in recommendation.parallelism:
            return recommendation.parallelism[name]
        mix = recommendation.sizes.get(name)
        return current if mix is None else max(1, sum(mix.values()))

    def _over_provision(self, counts: dict[str, int], named: set[str], notes: list[str]) -> dict[str, int]:
        """Only of what was recommended: on a target that stays, the factor is in already."""
        if self.over_provisioning == 1.0:
            return counts
        # 1.2 * 5 is 6.000000000000001 in floating point: without the margin that would cost a slot
        raised = {
            name: max(1, math.ceil(count * self.over_provisioning - 1e-9)) if name in named else count
            for name, count in counts.items()
        }
        return _noted(counts, raised, f"over-provisioning x{self.over_provisioning:g}", notes)

    def _limit_step(self, counts: dict[str, int], current: Mapping[str, int], notes: list[str]) -> dict[str, int]:
        if self.max_step is None:
            return counts
        limited = {name: min(count, current[name] + self.max_step) for name, count in counts.items()}
        return _noted(counts, limited, f"at most +{self.max_step} per action", notes)

    def _bound(self, counts: dict[str, int], graph: Graph, notes: list[str]) -> dict[str, int]:
        least = self._least(graph)
        bounded = {}
        for op in graph.operators:
            highs = [high for high in (self.max_parallelism, op.max_parallelism) if high is not None]
            bounded[op.name] = max(least[op.name], min([counts[op.name], *highs]))
        at_most = [op for op in graph.operators if counts[op.name] != bounded[op.name] == op.max_parallelism]
        reasons = {op.bound_by for op in at_most if op.bound_by}
        why = "min/max parallelism" + (f" ({'; '.join(sorted(reasons))})" if reasons else "")
        return _noted(counts, bounded, why, notes)

    def _least(self, graph: Graph) -> dict[str, int]:
        return {op.name: max(self.min_parallelism, op.min_parallelism) for op in graph.operators}

    def _share(self, counts: dict[str, int], situation: Situation, notes: list[str]) -> dict[str, int]:
        """One number for all, which is nobody's too few: a mean may be below the minimum of one of them."""
        one, sentence = shared_parallelism(counts, situation.observation)
        if sentence:
            notes.append(sentence)
        shared, least = dict.fromkeys(counts, one), max(self._least(situation.graph).values())
        return _noted(shared, dict.fromkeys(counts, max(one, least)), "min/max parallelism", notes)

    def _fit(self, counts: dict[str, int], graph: Graph, notes: list[str]) -> dict[str, int]:
        if self.max_slots is None:
            return counts
        if graph.shared:
            fitted = dict.fromkeys(counts, max(min(*counts.values(), self.max_slots), *self._least(graph).values()))
        else:
            fitted = divide(counts, self.max_slots, self._least(graph))
        return _noted(counts, fitted, f"only {self.max_slots} slots", notes)


def divide(counts: Mapping[str, int], slots: int, least: Mapping[str, int] | None = None) -> dict[str, int]:
    """Divide slots in proportion to the counts: nobody below its least or above its count, the total not above `slots`.

    What rounding down leaves over goes to the largest remainders, earlier operators first. Where even the least of
    everyone is more than the slots, everyone gets just that: less cannot run.
    """
    total = sum(counts.values())
    if total <= slots:
        return dict(counts)
    least = {name: min((least or {}).get(name, 1), count) for name, count in counts.items()}
    shares = {name: count * slots / total for name, count in counts.items()}
    fitted = {name: max(least[name], math.floor(share)) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: fitted[name] - shares[name])
    while sum(fitted.values()) < slots:
        name = next(name for name in by_remainder if fitted[name] < counts[name])
        fitted[name] += 1
        by_remainder.remove(name)
        by_remainder.append(name)
    while sum(fitted.values()) > slots and any(fitted[name] > least[name] for name in fitted):
        # somebody's least was more than its share: those furthest above theirs give it back
        name = max((n for n in fitted if fitted[n] > least[n]), key=lambda n: fitted[n] - shares[n])
        fitted[name] -= 1
    return fitted


def _requested_again(situation: Situation) -> dict[str, int]:
    """Operators whose shortage is over and that still have what it left them: what they are to have."""
    return {
        name: one.requested
        for name, one in situation.shortages.items()
        if situation.time_s >= one.until_s and situation.target.parallelism[name] == one.available < one.requested
    }


def _without_shortages(counts: dict[str, int], situation: Situation, notes: list[str]) -> dict[str, int]:
    """An operator that the cluster could not give more is not given more until it is time to ask again."""
    short = {name: one for name, one in situation.shortages.items() if situation.time_s < one.until_s}
    capped = {
        name: min(count, max(short[name].available, situation.target.parallelism[name])) if name in short else count
        for name, count in counts.items()
    }
    until_s = max((one.until_s for one in short.values()), default=0.0)
    return _noted(counts, capped, f"the cluster gave no more; asked again in {until_s - situation.time_s:.0f} s", notes)


def _fitted_sizes(
    mixes: Mapping[str, InstanceMix], counts: Mapping[str, int], notes: list[str]
) -> dict[str, InstanceMix]:
    """Every mix brought to its operator's parallelism: smaller in proportion, larger by its most frequent size."""
    fitted: dict[str, InstanceMix] = {}
    for name, mix in mixes.items():
        total = sum(mix.values())
        if total == 0:
            continue
        fitted[name] = dict(mix)
        if total > counts[name]:
            fitted[name] = _divided_mix(mix, counts[name])
        elif total < counts[name]:
            most = max(mix, key=lambda size: mix[size])
            fitted[name][most] += counts[name] - total
        if fitted[name] != dict(mix):
            notes.append(f"sizes of {name}: {_mix(mix)} -> {_mix(fitted[name])}")
    return fitted


def _divided_mix(mix: InstanceMix, instances: int) -> InstanceMix:
    counts = {size: count for size, count in mix.items() if count}
    divided = divide(counts, instances, dict.fromkeys(counts, 0))
    return {size: count for size, count in divided.items() if count}


def _mix(mix: InstanceMix) -> str:
    return " + ".join(f"{count} {size}" for size, count in mix.items())


def _noted(before: dict[str, int], after: dict[str, int], why: str, notes: list[str]) -> dict[str, int]:
    changes = [f"{name} {before[name]} -> {after[name]}" for name in before if before[name] != after[name]]
    if changes:
        notes.append(f"{why}: {', '.join(changes)}")
    return after
