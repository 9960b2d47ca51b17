"""Spark's own dynamic allocation for DStreams, brought to single operators (`ExecutorAllocationManager`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.dataflow.bottleneck import blocked_factor, upstream_backpressure
from sluice.dataflow.numbers import MOST_INSTANCES, listing, number, ratio
from sluice.dataflow.rates import arriving_rate, capacity, source_arrival_rate
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter


@policy("spark-dra")
@dataclass(frozen=True, kw_only=True)
class SparkDra:
    """Every minute: add instances if batches take nearly their interval, remove one if they take little of it.

    ratio = mean batch processing time / batch interval; at or above `scaling_up_ratio` it adds `max(round(ratio), 1)`,
    at or below `scaling_down_ratio` it removes one. On an engine without batches it is the time a batch of what
    arrives, and of what backpressure holds back upstream, would take: arriving rate / true input rate, else the busy
    share. The first window decides at once.
    """

    interval_s: float = parameter(60.0, "time between decisions; the mean of its windows counts")
    scaling_up_ratio: float = parameter(0.9, "ratio at or above which instances are added")
    scaling_down_ratio: float = parameter(0.3, "ratio at or below which one is removed")

    def __post_init__(self) -> None:
        if not 0 < self.interval_s < math.inf:
            raise ValueError(f"interval_s must be above 0, got {self.interval_s}")
        if not 0 < self.scaling_down_ratio < self.scaling_up_ratio < math.inf:
            raise ValueError(
                "scaling_down_ratio must be above 0 and below scaling_up_ratio, "
                f"got {self.scaling_down_ratio} and {self.scaling_up_ratio}"
            )

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        ratios: dict[str, list[float]] = {name: list(seen) for name, seen in memory.get("ratios", {}).items()}
        for name, seen in batch_ratios(observation).items():
            if seen is not None:
                ratios.setdefault(name, []).append(seen)
        since_s = observation.time_s - memory.get("decided_s", -math.inf)
        if since_s < self.interval_s:
            waiting = f"spark-dra: {number(since_s)} of {number(self.interval_s)} s since the last decision"
            return Recommendation.hold(waiting), {**memory, "ratios": ratios}
        means = {name: sum(seen) / len(seen) for name, seen in ratios.items() if seen and name in observation.operators}
        return self._by_ratio(observation.parallelism, means), {"ratios": {}, "decided_s": observation.time_s}

    def _by_ratio(self, now: dict[str, int], means: dict[str, float]) -> Recommendation:
        if not means:
            return Recommendation.hold(
                f"spark-dra: no batch time, rate or busy share known of any of {len(now)} operators"
            )
        after = {name: self._next(now[name], mean) for name, mean in means.items()}
        changes = {name: count for name, count in after.items() if count != now[name]}
        if not changes:
            ratios = listing(f"{name} {number(mean)}" for name, mean in means.items())
            return Recommendation.hold(f"spark-dra: no change for batch time / interval: {ratios}")
        details = listing(f"{name} {now[name]} -> {changes[name]} at ratio {number(means[name])}" for name in changes)
        return Recommendation(parallelism=now | changes, reason=f"spark-dra: batch time / interval: {details}")

    def _next(self, parallelism: int, mean: float) -> int:
        if mean >= self.scaling_up_ratio:
            # Scala rounds half up, Python to even
            return min(parallelism + max(math.floor(mean + 0.5), 1), MOST_INSTANCES)
        return max(1, parallelism - 1) if mean <= self.scaling_down_ratio else parallelism


def batch_ratios(observation: Observation) -> dict[str, float | None]:
    """Share of the batch interval that processing a batch takes; above 1 batches queue up."""
    return {name: _batch_ratio(name, metrics, observation) for name, metrics in observation.operators.items()}


def _batch_ratio(name: str, metrics: OperatorMetrics, observation: Observation) -> float | None:
    measured = ratio(metrics.batch_s, metrics.batch_interval_s)
    if measured is not None:
        return measured
    modelled = ratio(_offered_rate(name, metrics, observation), capacity(metrics))
    return metrics.busy if modelled is None else modelled


def _offered_rate(name: str, metrics: OperatorMetrics, observation: Observation) -> float | None:
    """What arrives, and what is known to be held back upstream because the operator is too slow for it."""
    if observation.topology.is_source(name):
        return source_arrival_rate(metrics)
    arriving = arriving_rate(metrics)
    blocked = upstream_backpressure(observation, [name])
    return arriving if arriving is None or not blocked else arriving * blocked_factor(blocked[name])
