"""What stands between a policy's wish and the engine (thesis 6.6.4): each guard says what it changed.

Order: over-provisioning factor, largest step per operator, min/max parallelism, fit into the slots there are,
cool-down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sluice.model import Graph, Recommendation
from sluice.registry import parameter


@dataclass(frozen=True)
class GuardResult:
    """What is left of a wish. `cooling` means the wish is kept for the record but must not be applied."""

    parallelism: dict[str, int]
    notes: tuple[str, ...]
    cooling: bool = False


@dataclass(frozen=True, kw_only=True)
class Guards:
    """Limits that hold for every policy; the defaults limit nothing but common sense."""

    over_provisioning: float = parameter(1.0, "factor on every wish, for policies without their own")
    max_step: int | None = parameter(None, "most instances an operator may gain in one action")
    min_parallelism: int = parameter(1, "fewest instances of an operator")
    max_parallelism: int | None = parameter(None, "most instances of an operator")
    max_slots: int | None = parameter(None, "slots of the whole job; larger wishes are divided proportionally")
    cooldown_s: float = parameter(0.0, "quiet time after a scaling action")

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

    def apply(
        self,
        decision: Recommendation,
        current: Mapping[str, int],
        graph: Graph,
        time_s: float,
        last_rescale_s: float | None,
    ) -> GuardResult:
        """Guard one wish; operators the decision does not name keep what they have."""
        wish = {name: decision.parallelism.get(name, count) for name, count in current.items()}
        notes: list[str] = []
        if not decision.is_hold:
            for guard in (self._over_provision, self._limit_step):
                wish = guard(wish, current, notes)
            wish = self._bound(wish, graph, notes)
            wish = self._fit(wish, notes)
        cooling_s = self.cooling_s(time_s, last_rescale_s)
        cooling = cooling_s > 0 and wish != dict(current)
        if cooling:
            notes.append(f"cool-down: {cooling_s:g} of {self.cooldown_s:g} s left")
        return GuardResult(wish, tuple(notes), cooling)

    def cooling_s(self, time_s: float, last_rescale_s: float | None) -> float:
        """What is left of the cool-down, 0 if there is none."""
        return 0.0 if last_rescale_s is None else max(0.0, last_rescale_s + self.cooldown_s - time_s)

    def _over_provision(self, wish: dict[str, int], _: Mapping[str, int], notes: list[str]) -> dict[str, int]:
        if self.over_provisioning == 1.0:
            return wish
        # 1.2 * 5 is 6.000000000000001 in floating point: without the margin that would cost a slot
        raised = {name: max(1, math.ceil(count * self.over_provisioning - 1e-9)) for name, count in wish.items()}
        return _noted(wish, raised, f"over-provisioning x{self.over_provisioning:g}", notes)

    def _limit_step(self, wish: dict[str, int], current: Mapping[str, int], notes: list[str]) -> dict[str, int]:
        if self.max_step is None:
            return wish
        limited = {name: min(count, current[name] + self.max_step) for name, count in wish.items()}
        return _noted(wish, limited, f"at most +{self.max_step} per action", notes)

    def _bound(self, wish: dict[str, int], graph: Graph, notes: list[str]) -> dict[str, int]:
        bounded = {}
        for op in graph.operators:
            low = max(self.min_parallelism, op.min_parallelism)
            highs = [high for high in (self.max_parallelism, op.max_parallelism) if high is not None]
            bounded[op.name] = max(low, min([wish[op.name], *highs]))
        return _noted(wish, bounded, "min/max parallelism", notes)

    def _fit(self, wish: dict[str, int], notes: list[str]) -> dict[str, int]:
        if self.max_slots is None or sum(wish.values()) <= self.max_slots:
            return wish
        return _noted(wish, divide(wish, self.max_slots), f"only {self.max_slots} slots", notes)


def divide(wish: Mapping[str, int], slots: int) -> dict[str, int]:
    """Divide slots in proportion to the wishes, at least 1 each, never more than wished, never above the total.

    What rounding down leaves over goes to the largest remainders, earlier operators first. With fewer slots
    than operators everyone gets 1: less cannot run.
    """
    total = sum(wish.values())
    if total <= slots:
        return dict(wish)
    shares = {name: count * slots / total for name, count in wish.items()}
    fitted = {name: max(1, math.floor(share)) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: fitted[name] - shares[name])
    while sum(fitted.values()) < slots:
        name = next(name for name in by_remainder if fitted[name] < wish[name])
        fitted[name] += 1
        by_remainder.remove(name)
        by_remainder.append(name)
    while sum(fitted.values()) > slots and max(fitted.values()) > 1:
        # the minimum of 1 was more than someone's share: those furthest above theirs give it back
        name = max((n for n in fitted if fitted[n] > 1), key=lambda n: fitted[n] - shares[n])
        fitted[name] -= 1
    return fitted


def _noted(before: dict[str, int], after: dict[str, int], why: str, notes: list[str]) -> dict[str, int]:
    changes = [f"{name} {before[name]} -> {after[name]}" for name in before if before[name] != after[name]]
    if changes:
        notes.append(f"{why}: {', '.join(changes)}")
    return after
