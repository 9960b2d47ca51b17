"""What an application needs beyond any policy: policies around a policy, as pure as it.

`WhileIdle` goes to the minimum when nothing arrives (most policies know nothing then, and hold for ever);
`WithObjective` adds what is needed to work off a backlog in time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.model import Decision, Observation, OperatorMetrics
from sluice.policies import Memory, Policy, asked_while_cooling


@dataclass(frozen=True, kw_only=True)
class WhileIdle:
    """After `idle_s` (and two triggers) without a record, wish for the minimum; otherwise ask the inner policy."""

    inner: Policy
    idle_s: float
    minimum: int = 1

    @property
    def asked_while_cooling(self) -> bool:
        return asked_while_cooling(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Decision, Memory]:
        quiet = all(_is_quiet(metrics) for metrics in observation.operators.values())
        since_s = memory.get("quiet_since_s") if quiet else None
        if quiet and since_s is None:
            since_s = observation.time_s - observation.interval_s
        kept = {"quiet_since_s": since_s, "inner": memory.get("inner", {})}
        triggers = [metrics.batch_interval_s or 0.0 for metrics in observation.operators.values()]
        if since_s is not None and observation.time_s - since_s >= max(self.idle_s, 2 * max(triggers)):
            wish = dict.fromkeys(observation.operators, self.minimum)
            quiet_for_s = observation.time_s - since_s
            return Decision(parallelism=wish, reason=f"idle: nothing arrived for {quiet_for_s:.0f} s"), kept
        decision, learned = self.inner.decide(observation, kept["inner"])
        return decision, {**kept, "inner": dict(learned)}


@dataclass(frozen=True, kw_only=True)
class WithObjective:
    """Raise the inner policy's wish where latency is above the objective.

    The backlog is to be gone within the objective: `ceil(p * (arrival + lag / objective) / true_rate)`. Where lag or
    the true rate is unknown, latency over objective is the factor instead.
    """

    inner: Policy
    latency_s: float

    @property
    def asked_while_cooling(self) -> bool:
        return asked_while_cooling(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Decision, Memory]:
        decision, learned = self.inner.decide(observation, memory)
        late = {
            name: metrics
            for name, metrics in observation.operators.items()
            if metrics.latency_s is not None and metrics.latency_s > self.latency_s
        }
        raised = {}
        for name, metrics in late.items():
            wished = decision.parallelism.get(name, metrics.parallelism)
            needed = self._needed(metrics)
            if needed > wished:
                raised[name] = needed
        if not raised:
            return decision, learned
        told = ", ".join(
            f"{name} {wish} because it is {late[name].latency_s:.1f} s behind" for name, wish in raised.items()
        )
        reason = f"{decision.reason}; objective of {self.latency_s:g} s: {told}"
        return decision.model_copy(
            update={"parallelism": {**decision.parallelism, **raised}, "reason": reason}
        ), learned

    def _needed(self, metrics: OperatorMetrics) -> int:
        arrival = metrics.arrival_rate if metrics.arrival_rate is not None else metrics.input_rate
        if metrics.lag is not None and metrics.true_input_rate and arrival is not None:
            factor = (arrival + metrics.lag / self.latency_s) / metrics.true_input_rate
        else:
            factor = min(2.0, (metrics.latency_s or 0.0) / self.latency_s)
        return max(metrics.parallelism, math.ceil(metrics.parallelism * factor - 1e-9))


def _is_quiet(metrics: OperatorMetrics) -> bool:
    nothing_came = metrics.input_rate == 0 or (metrics.input_rate is None and not metrics.busy)
    return nothing_came and not metrics.lag
