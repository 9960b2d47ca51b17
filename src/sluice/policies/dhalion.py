"""Dhalion: symptoms, a diagnosis, a resolution (Floratou et al., VLDB 2017; thesis 4.2 and 6.7.1).

The three steps are functions between plain values; `regulate` runs any three of them, and `dhalion` is the scaler
of the paper made of the three methods below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from sluice.dataflow.bottleneck import (
    backpressured,
    blocked_factor,
    falling_behind,
    most_urgent,
    upstream_backpressure,
    walk_downstream,
)
from sluice.dataflow.numbers import listing, number, ratio, whole_instances, whole_instances_down
from sluice.dataflow.rates import consumed_rate, topic_readers
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter


@dataclass(frozen=True)
class Symptoms:
    """Operator -> the number that shows it; `measured` is false where nothing is known that could show any."""

    backpressure: dict[str, float] = field(default_factory=dict)
    lag_growth: dict[str, float] = field(default_factory=dict)
    measured: bool = True

    @property
    def healthy(self) -> bool:
        return not self.backpressure and not self.lag_growth


@dataclass(frozen=True)
class Diagnosis:
    """Operators with too few instances and the factor they lack, or with too many."""

    under_provisioned: dict[str, float] = field(default_factory=dict)
    over_provisioned: tuple[str, ...] = ()
    finding: str = ""


Detector = Callable[[Observation], Symptoms]
Diagnoser = Callable[[Observation, Symptoms], Diagnosis]
Resolver = Callable[[Observation, Diagnosis], Recommendation]


def regulate(observation: Observation, detect: Detector, diagnose: Diagnoser, resolve: Resolver) -> Recommendation:
    """Dhalion's framework: each step sees only the result of the one before it."""
    return resolve(observation, diagnose(observation, detect(observation)))


@policy("dhalion")
@dataclass(frozen=True, kw_only=True)
class Dhalion:
    """Scale up the one bottleneck by what it could not take; when healthy, scale down operators with nothing waiting.

    Bottleneck: the first operator downstream of the backpressured ones that is not known to be. Its factor is
    `1 / (1 - b)`, b being the largest backpressure right upstream, at most 0.9 (the thesis prints `b / (1 - b)`,
    which would shrink it; the paper's own `1 + suspended / processed` is what is meant). Without backpressure, an
    operator whose topic grows too fast is its own bottleneck, with the factor `1 + lag_rate / input_rate`.
    Healthy operators with an empty buffer (sources: an empty topic) are divided by `scale_down_factor`.
    """

    scale_down_factor: float = parameter(1.2, "healthy operators with nothing waiting are divided by this")
    lag_rate_threshold: float = parameter(1000.0, "growth of a topic, records/s, above which its reader is too slow")
    lag_close_to_zero: float = parameter(10_000.0, "records in a topic that still count as nothing waiting")
    buffer_close_to_zero: float = parameter(0.2, "share of the input buffer in use that still counts as empty")
    backpressure_threshold: float = parameter(0.1, "share of time blocked above which an operator is backpressured")
    scale_all_bottlenecks: bool = parameter(
        False, "scale up every bottleneck at once, and the operators that would be next (thesis 8.3)"
    )
    scale_down_use: float = parameter(
        0.0, "scale down to this busy share instead of by the factor; 0 is off (thesis 8.3)"
    )

    scale_down_rule: Literal["divide", "subtract"] = parameter(
        "divide", "divide by the factor, or leave 2 - factor of the instances: 0.8 of them for 1.2 (thesis 4.2)"
    )

    def __post_init__(self) -> None:
        if not 1 < self.scale_down_factor < float("inf"):
            raise ValueError(f"scale_down_factor must be above 1, got {self.scale_down_factor}")
        if self.scale_down_rule == "subtract" and self.scale_down_factor >= 2:
            raise ValueError(f"scale_down_factor must be below 2 to subtract by, got {self.scale_down_factor}")
        for name in ("lag_rate_threshold", "lag_close_to_zero"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("buffer_close_to_zero", "backpressure_threshold", "scale_down_use"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        return regulate(observation, self.detect, self.diagnose, self.resolve), memory

    def detect(self, observation: Observation) -> Symptoms:
        operators = observation.operators
        return Symptoms(
            backpressure={
                name: operators[name].backpressure or 0.0
                for name in backpressured(observation, self.backpressure_threshold)
            },
            lag_growth={
                name: operators[name].lag_rate or 0.0 for name in falling_behind(observation, self.lag_rate_threshold)
            },
            measured=any(metrics.backpressure is not None for metrics in operators.values())
            or any(metrics.lag_rate is not None for metrics in topic_readers(observation).values()),
        )

    def diagnose(self, observation: Observation, symptoms: Symptoms) -> Diagnosis:
        if not symptoms.measured:
            return Diagnosis(finding=f"no backpressure or lag known of any of {len(observation.operators)} operators")
        if symptoms.healthy:
            return Diagnosis(over_provisioned=self._nothing_waits(observation), finding="healthy")
        lacking = self._by_backpressure(observation, symptoms)
        if not lacking or self.scale_all_bottlenecks:
            lacking = self._by_lag(observation, symptoms) | lacking
        if lacking and not self.scale_all_bottlenecks:
            name = most_urgent(observation, lacking)
            lacking = {name: lacking[name]}
        if lacking and self.scale_all_bottlenecks:
            lacking |= _next_bottlenecks(observation, lacking)
        return Diagnosis(under_provisioned=lacking, finding=_describe(symptoms))

    def resolve(self, observation: Observation, diagnosis: Diagnosis) -> Recommendation:
        now = observation.parallelism
        after = {name: whole_instances(now[name] * factor) for name, factor in diagnosis.under_provisioned.items()}
        after |= {name: self._less(observation, name) for name in diagnosis.over_provisioned}
        changes = {name: count for name, count in after.items() if count != now[name]}
        if not changes:
            return Recommendation.hold(
                f"dhalion: {diagnosis.finding}; nothing to change, {len(diagnosis.over_provisioned)} of {len(now)} "
                "operators have nothing waiting"
            )
        details = listing(f"{name} {now[name]} -> {changes[name]}{self._why(diagnosis, name)}" for name in changes)
        return Recommendation(parallelism=now | changes, reason=f"dhalion: {diagnosis.finding}; {details}")

    def _by_backpressure(self, observation: Observation, symptoms: Symptoms) -> dict[str, float]:
        causes = walk_downstream(observation, symptoms.backpressure)
        return {name: blocked_factor(share) for name, share in upstream_backpressure(observation, causes).items()}

    def _by_lag(self, observation: Observation, symptoms: Symptoms) -> dict[str, float]:
        lacking = {
            name: ratio(growth, consumed_rate(observation.operators[name]))
            for name, growth in symptoms.lag_growth.items()
            if name not in symptoms.backpressure
        }
        return {name: 1 + share for name, share in lacking.items() if share is not None}

    def _nothing_waits(self, observation: Observation) -> tuple[str, ...]:
        readers = topic_readers(observation)

        def empty(name: str, metrics: OperatorMetrics) -> bool:
            if name in readers:
                return metrics.lag is not None and metrics.lag < self.lag_close_to_zero
            return (metrics.buffer_usage or 0.0) < self.buffer_close_to_zero

        return tuple(name for name, metrics in observation.operators.items() if empty(name, metrics))

    def _less(self, observation: Observation, name: str) -> int:
        metrics = observation.operators[name]
        if self.scale_down_use and metrics.busy is not None:
            return min(metrics.parallelism, whole_instances(metrics.parallelism * metrics.busy / self.scale_down_use))
        kept = 2 - self.scale_down_factor if self.scale_down_rule == "subtract" else 1 / self.scale_down_factor
        return whole_instances_down(metrics.parallelism * kept)

    def _why(self, diagnosis: Diagnosis, name: str) -> str:
        factor = diagnosis.under_provisioned.get(name)
        if factor is not None:
            return f" (times {number(factor)})"
        return f" (to a busy share of {number(self.scale_down_use)})" if self.scale_down_use else ""


def _next_bottlenecks(observation: Observation, lacking: dict[str, float]) -> dict[str, float]:
    """Operators that could not follow: their busy share times the bottleneck's factor exceeds 1."""
    faster = max(lacking.values())
    return {
        name: factor
        for name, metrics in observation.operators.items()
        if name not in lacking and (factor := (metrics.busy or 0.0) * faster) > 1
    }


def _describe(symptoms: Symptoms) -> str:
    blocked = [f"{name} backpressured {share:.0%} of the time" for name, share in symptoms.backpressure.items()]
    growing = [f"lag of {name} grows by {number(rate)} rec/s" for name, rate in symptoms.lag_growth.items()]
    return listing([*blocked, *growing], limit=2)
