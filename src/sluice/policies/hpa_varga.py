"""HPA-Varga: the horizontal pod autoscaler on utilisation and on the relative change of lag (thesis 4.5 and 6.7.4).

Varga, Balassi, Kiss, "Towards autoscaling of Apache Flink jobs" (2021), brought from workers to single operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sluice.dataflow.bottleneck import (
    backpressured,
    falling_behind,
    most_urgent,
    upstream_backpressure,
    walk_downstream,
)
from sluice.dataflow.hpa import Behaviour, Reading, decide, overload_where_saturated
from sluice.dataflow.numbers import ratio
from sluice.dataflow.rates import job_throughput, topic_readers
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter


@policy("hpa-varga")
@dataclass(frozen=True, kw_only=True)
class HpaVarga:
    """Utilisation near a target, and for the bottleneck no growing lag; the larger result wins.

    Utilisation is `1 - idle`. The relative change of lag is `1 + d(lag)/dt / input rate` of the job, the derivative
    being the slope over `derivative_s`; it counts only for the bottleneck (the sources, if none is known to be blocked)
    and only while lag grows faster than `lag_rate_threshold`.
    """

    utilisation_target: float = parameter(0.7, "share of time not idle to aim for")
    lag_change_target: float = parameter(1.0, "relative change of lag to aim for; 1 is a lag that stays as it is")
    window_s: float = parameter(300.0, "the largest recommendation of this time counts")
    derivative_s: float = parameter(60.0, "time over which the slope of the lag is taken")
    lag_rate_threshold: float = parameter(1000.0, "growth of the job's lag, records/s, below which it is ignored")
    backpressure_threshold: float = parameter(0.1, "share of time blocked above which an operator is backpressured")
    tolerance: float = parameter(0.0, "no change while metric / target is within 1 +- this; Kubernetes has 0.1")
    step_policies: bool = parameter(
        False, "as Kubernetes: at most 4 instances or twice as many per 15 s, and only scaling down waits"
    )
    missing_metric_rules: bool = parameter(False, "as Kubernetes: no scaling down while one of the metrics is missing")
    saturates_at: float = parameter(0.0, "utilisation that cannot show more load; 0 is off (thesis 8.3)")

    decides_during_cooldown: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("utilisation_target", "lag_change_target", "derivative_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.lag_rate_threshold < float("inf"):
            raise ValueError(f"lag_rate_threshold must not be negative, got {self.lag_rate_threshold}")
        for name in ("backpressure_threshold", "saturates_at"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        _ = self._behaviour

    @property
    def _behaviour(self) -> Behaviour:
        return Behaviour(
            window_s=self.window_s,
            tolerance=self.tolerance,
            step_policies=self.step_policies,
            missing_metric_rules=self.missing_metric_rules,
        )

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        lags = _recent_lags(observation, memory.get("lags", []), self.derivative_s)
        growth = _slope(lags) if len(lags) > 1 else _reported_growth(observation)
        change = self._lag_change_readings(observation, growth)
        overload = overload_where_saturated(observation, self.saturates_at)
        readings: dict[str, Sequence[Reading]] = {}
        for name, metrics in observation.operators.items():
            use = utilisation(metrics)
            readings[name] = (
                Reading("utilisation", use, self.utilisation_target, overload(use)),
                *([change[name]] if name in change else []),
            )
        decision, kept = decide("hpa-varga", observation, readings, self._behaviour, memory)
        return decision, kept | {"lags": lags}

    def _lag_change_readings(self, observation: Observation, growth: float | None) -> dict[str, Reading]:
        metric, target = "relative change of lag", self.lag_change_target
        if growth is None:
            return {name: Reading(metric, None, target) for name in observation.operators}
        if growth <= self.lag_rate_threshold:
            return {}
        excess = ratio(growth, job_throughput(observation))
        reading = Reading(metric, None if excess is None else 1 + excess, target)
        return dict.fromkeys(self._causes(observation), reading)

    def _causes(self, observation: Observation) -> tuple[str, ...]:
        blocked = backpressured(observation, self.backpressure_threshold)
        if blocked:
            causes = walk_downstream(observation, blocked)
            return (most_urgent(observation, upstream_backpressure(observation, causes)),) if causes else ()
        return falling_behind(observation, self.lag_rate_threshold) or observation.topology.sources


def utilisation(metrics: OperatorMetrics) -> float | None:
    """`1 - idle`; where idle is unknown the same by definition: the busy share, and the blocked one if it is known."""
    if metrics.idle is not None:
        return 1.0 - metrics.idle
    return None if metrics.busy is None else min(1.0, metrics.busy + (metrics.backpressure or 0.0))


def _recent_lags(observation: Observation, earlier: list[list[float]], period_s: float) -> list[list[float]]:
    """[time_s, records waiting in all topics], this window included where the lag of every source is known."""
    recent = [point for point in earlier if observation.time_s - period_s <= point[0] < observation.time_s]
    lag = _total(observation, {name: metrics.lag for name, metrics in topic_readers(observation).items()})
    return recent if lag is None else [*recent, [observation.time_s, lag]]


def _reported_growth(observation: Observation) -> float | None:
    return _total(observation, {name: metrics.lag_rate for name, metrics in topic_readers(observation).items()})


def _total(observation: Observation, values: dict[str, float | None]) -> float | None:
    """Sum over all topics: every source must be known, others count as far as they are."""
    if any(values[name] is None for name in observation.topology.sources):
        return None
    return sum(value or 0.0 for value in values.values())


def _slope(points: list[list[float]]) -> float:
    """Least squares, as Prometheus' `deriv`."""
    mean_time = sum(time_s for time_s, _ in points) / len(points)
    mean_lag = sum(lag for _, lag in points) / len(points)
    moment = sum((time_s - mean_time) * (lag - mean_lag) for time_s, lag in points)
    spread = sum((time_s - mean_time) ** 2 for time_s, _ in points)
    return moment / spread
