"""The simplest rule: one more when busy, one less when not."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.dataflow.numbers import listing, number
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter


@policy("threshold")
@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Add `step` instances above `high` use, remove one below `low`; use is the busy share, else CPU use."""

    high: float = parameter(0.7, "use above which an operator grows; a saturated one may show as little as 0.8")
    low: float = parameter(0.3, "use below which an operator shrinks by one")
    step: int = parameter(1, "instances added at a time")

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ValueError(f"low must be below high, both in [0, 1], got low {self.low} and high {self.high}")
        if self.step < 1:
            raise ValueError(f"step must be at least 1, got {self.step}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        uses = {name: use for name, metrics in observation.operators.items() if (use := _use(metrics)) is not None}
        after = {name: self._next(now[name], use) for name, use in uses.items()}
        changes = {name: count for name, count in after.items() if count != now[name]}
        if not uses:
            return Recommendation.hold(
                f"threshold: no busy share or CPU use known of any of {len(now)} operators"
            ), memory
        if not changes:
            details = listing(f"{name} {number(use)}" for name, use in uses.items())
            band = f"{number(self.low)} to {number(self.high)}"
            return Recommendation.hold(f"threshold: no use outside {band}: {details}"), memory
        details = listing(f"{name} {now[name]} -> {changes[name]} at use {number(uses[name])}" for name in changes)
        return Recommendation(parallelism=now | changes, reason=f"threshold: {details}"), memory

    def _next(self, parallelism: int, use: float) -> int:
        if use > self.high:
            return parallelism + self.step
        return max(1, parallelism - 1) if use < self.low else parallelism


def _use(metrics: OperatorMetrics) -> float | None:
    return metrics.busy if metrics.busy is not None else metrics.cpu
