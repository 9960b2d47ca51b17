"""What an application needs beyond any policy: policies around a policy, as pure as it.

`IdleRelease` goes to the minimum when nothing arrives (most policies know nothing then, and hold for ever);
`LatencyObjective` adds what is needed to keep latency below an objective, and to work off a backlog in time;
`SharedExecutors` shows each query what the executors do for it beside all other work.

Each keeps its own memory under a key that begins with `@` and hands the rest to the policy it wraps, so what a policy
has learned can be carried between runs with and without wrappers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.dataflow.rates import arriving_rate
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, Policy, decides_during_cooldown

HEADROOM = 0.7
"""The share of an objective that is planned for; the rest is for batches that take longer than others."""
WINDOWS = 3
"""Of so many windows the shortest fixed time of a batch counts: a single slow batch tells nothing."""


@dataclass(frozen=True, kw_only=True)
class IdleRelease:
    """After `idle_s` (and two triggers) without a record, recommend the minimum; otherwise ask the inner policy.

    An application that runs other jobs is not idle, nor is a query of which nothing is known while there is work: its
    first batch has no figures, and one that is longer than the window none before it is over.
    """

    inner: Policy
    idle_s: float
    minimum: int = 1

    @property
    def decides_during_cooldown(self) -> bool:
        return decides_during_cooldown(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        at_work = bool(observation.at_work)
        quiet = observation.other_busy is None and all(
            _is_quiet(metrics, at_work=at_work) for metrics in observation.operators.values()
        )
        own, inner = _split(memory, "@idle")
        since_s = own.get("since_s") if quiet else None
        if quiet and (since_s is None or since_s > observation.time_s):
            # nothing is remembered, or something of a run with another clock
            since_s = observation.time_s - observation.interval_s
        kept = {"@idle": {"since_s": since_s}}
        triggers = [metrics.batch_interval_s or 0.0 for metrics in observation.operators.values()]
        if since_s is not None and observation.time_s - since_s >= max(self.idle_s, 2 * max(triggers)):
            least = dict.fromkeys(observation.operators, self.minimum)
            quiet_for_s = observation.time_s - since_s
            reason = f"idle: nothing arrived for {quiet_for_s:.0f} s"
            return Recommendation(parallelism=least, reason=reason), {**inner, **kept}
        recommendation, learned = self.inner.decide(observation, inner)
        return recommendation, {**learned, **kept}


@dataclass(frozen=True, kw_only=True)
class SharedExecutors:
    """Show the inner policy every query as if all executors worked for it in the present mix of work.

    A query that uses 0.4 of the slots beside one that uses 0.5 sees them busy by 0.9, and a true rate of what it reads
    over 0.9. So what a policy recommends for it is a factor on the executors of all, as the guards take it; by its own
    share alone it would be given what it needs if the others were not there. Jobs that are no query's are part of the
    mix: among them are those a `foreachBatch` starts in threads of its own. The last known share stands for one that is
    unknown.
    """

    inner: Policy

    @property
    def decides_during_cooldown(self) -> bool:
        return decides_during_cooldown(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        own, inner = _split(memory, "@shared")
        shares = {
            name: metrics.busy if metrics.busy is not None else own.get(name)
            for name, metrics in observation.operators.items()
        }
        known = {name: share for name, share in shares.items() if share is not None}
        other_busy = observation.other_busy or 0.0
        if len(observation.operators) > 1 or other_busy:
            total = min(1.0, sum(known.values()) + other_busy)
            shown = {name: _in_the_mix(one, total) for name, one in observation.operators.items()}
            observation = observation.model_copy(update={"operators": shown})
        recommendation, learned = self.inner.decide(observation, inner)
        return recommendation, {**learned, "@shared": known}


@dataclass(frozen=True, kw_only=True)
class LatencyObjective:
    """Raise the inner policy's recommendation where latency is above the objective, or would settle above it.

    Behind it, the backlog is to be read within the objective: `ceil(p * (arrival + lag / objective) / true_rate)`;
    where lag or the true rate is unknown, latency over objective is the factor instead.

    Before that, batches are planned to settle within `HEADROOM` of it. One that reads all that waits takes a fixed time
    c and, at utilisation u, u times the time since the one before: batches settle at c / (1 - u), and a record waits
    one and a half of them. Ten per cent less room can be twice the latency, which no measured latency tells in advance.
    """

    inner: Policy
    latency_s: float

    @property
    def decides_during_cooldown(self) -> bool:
        return decides_during_cooldown(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        own, inner = _split(memory, "@objective")
        recommendation, learned = self.inner.decide(observation, inner)
        fixed: dict[str, list[float]] = {}
        raised: dict[str, int] = {}
        reasons: list[str] = []
        for name, metrics in observation.operators.items():
            fixed[name] = [*own.get("fixed_s", {}).get(name, []), *_fixed_s(metrics)][-WINDOWS:]
            recommended = recommendation.parallelism.get(name, metrics.parallelism)
            needed, why = max(self._to_catch_up(metrics), self._to_stay(metrics, fixed[name]))
            if needed > recommended:
                raised[name] = needed
                reasons.append(f"{name} {needed} because {why}")
        kept = {**learned, "@objective": {"fixed_s": fixed}}
        if not raised:
            return recommendation, kept
        reason = f"{recommendation.reason}; objective of {self.latency_s:g} s: {', '.join(reasons)}"
        counts = {**recommendation.parallelism, **raised}
        return recommendation.model_copy(update={"parallelism": counts, "reason": reason}), kept

    def _to_catch_up(self, metrics: OperatorMetrics) -> tuple[int, str]:
        if metrics.latency_s is None or metrics.latency_s <= self.latency_s:
            return 0, ""
        arrival = arriving_rate(metrics)
        if metrics.lag is not None and metrics.true_input_rate and arrival is not None:
            factor = (arrival + metrics.lag / self.latency_s) / metrics.true_input_rate
        else:
            factor = min(2.0, metrics.latency_s / self.latency_s)
        needed = max(metrics.parallelism, math.ceil(metrics.parallelism * factor - 1e-9))
        return needed, f"it is {metrics.latency_s:.1f} s behind"

    def _to_stay(self, metrics: OperatorMetrics, fixed: list[float]) -> tuple[int, str]:
        """Nothing where a batch's fixed time alone is too long: no number of executors would help."""
        arrival = arriving_rate(metrics)
        if not fixed or not metrics.true_input_rate or arrival is None:
            return 0, ""
        fixed_s = min(fixed)
        aim_s, trigger_s = HEADROOM * self.latency_s, metrics.batch_interval_s or 0.0
        longest_s = aim_s / 1.5
        room = 1 - fixed_s / longest_s if trigger_s <= longest_s else (aim_s - trigger_s / 2 - fixed_s) / trigger_s
        if room <= 0:
            return 0, ""
        needed = math.ceil(metrics.parallelism * arrival / (metrics.true_input_rate * room) - 1e-9)
        return (
            needed,
            f"batches that take {fixed_s:.1f} s beside their records leave {room:.0%} of them for {arrival:.3g} rec/s",
        )


def _split(memory: Memory, key: str) -> tuple[Memory, Memory]:
    """A wrapper's own memory, and that of the policy it wraps."""
    return memory.get(key, {}), {name: value for name, value in memory.items() if name != key}


def _in_the_mix(metrics: OperatorMetrics, total_busy: float) -> OperatorMetrics:
    if metrics.busy is None or not total_busy:
        return metrics
    if not metrics.busy:
        # all its work is in jobs that do not bear its name
        shown = {"busy": total_busy, "true_input_rate": metrics.input_rate / total_busy} if metrics.input_rate else {}
        return metrics.model_copy(update=shown)
    part = metrics.busy / total_busy
    rates = {"true_input_rate": metrics.true_input_rate, "true_output_rate": metrics.true_output_rate}
    changed: dict[str, float] = {name: rate * part for name, rate in rates.items() if rate is not None}
    if metrics.cpu is not None:
        changed["cpu"] = metrics.cpu / part
    return metrics.model_copy(update={**changed, "busy": total_busy})


def _is_quiet(metrics: OperatorMetrics, *, at_work: bool) -> bool:
    nothing_came = metrics.input_rate == 0 or (metrics.input_rate is None and not metrics.busy and not at_work)
    return nothing_came and not metrics.lag


def _fixed_s(metrics: OperatorMetrics) -> list[float]:
    """What the window's batches took beside their records, if that is known."""
    if metrics.batch_s is None or metrics.input_rate is None or not metrics.true_input_rate:
        return []
    gap_s = max(metrics.batch_s, metrics.batch_interval_s or 0.0)
    return [max(0.0, metrics.batch_s - gap_s * metrics.input_rate / metrics.true_input_rate)]
