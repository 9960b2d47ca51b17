"""What all horizontal pod autoscalers share: the ratio rule, the window, Kubernetes' own caution (thesis 4.4, 6.7.3).

`desired = ceil(p * metric / target)` per operator and metric; the largest of all metrics counts, and the largest of
those of the last `window_s` is recommended. The thesis stops there. Kubernetes adds a tolerance, limits per period and
rules for missing metrics, each of which is an option here.

The thesis' loop sleeps through the cooldown (6.7), so the saturated readings of a job that catches up after its
restart never enter the window. An HPA that decides during the cooldown doubles its slots there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.numbers import known_sum, listing, number, ratio, whole_instances
from sluice.dataflow.rates import job_throughput, source_arrival_rate
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory

# Kubernetes' default scaling policies for scaling up: the larger of 4 pods and 100 % per 15 s; down: 100 % per 15 s
STEP_PERIOD_S = 15.0
STEP_INSTANCES = 4
STEP_FACTOR = 2.0


_History = list[list[Any]]


@dataclass(frozen=True)
class Reading:
    """One metric of one operator; a `value` of null is unknown.

    `overload` multiplies the result where the metric has saturated and cannot show how much more is needed.
    """

    metric: str
    value: float | None
    target: float
    overload: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How readings become recommendations; the defaults are the thesis' HPA."""

    window_s: float = 300.0
    tolerance: float = 0.0
    step_policies: bool = False
    missing_metric_rules: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.window_s < math.inf:
            raise ValueError(f"window_s must be 0 or more seconds, got {self.window_s}")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance must be in [0, 1), got {self.tolerance}")


@dataclass(frozen=True)
class Proposal:
    """The instances one operator needs by its readings now, and the reading that needs most."""

    instances: int
    reading: Reading


def decide(
    label: str,
    observation: Observation,
    readings: Mapping[str, Sequence[Reading]],
    behaviour: Behaviour,
    memory: Memory,
) -> tuple[Recommendation, dict[str, Any]]:
    """The HPA's cycle. Memory: proposals of the window and instances in the period, as [time_s, {operator: n}]."""
    now, time_s = observation.parallelism, observation.time_s
    proposals = {name: made for name in now if (made := _proposal(now[name], readings[name], behaviour))}
    desired = {name: proposal.instances for name, proposal in proposals.items()}
    history = [*_since(memory.get("desired", []), time_s - behaviour.window_s), [time_s, desired]]
    kept: dict[str, Any] = {"desired": history}
    largest = _largest(history)
    if behaviour.step_policies:
        sizes = [*_since(memory.get("sizes", []), time_s - STEP_PERIOD_S), [time_s, now]]
        kept["sizes"] = sizes
        largest = {name: _limited(now[name], desired[name], largest[name], _fewest(sizes, name)) for name in desired}
    if not proposals:
        return Recommendation.hold(f"{label}: no metric known of any of {len(now)} operators"), kept
    after = {name: largest[name] for name in desired}
    reason = f"{label}: {_explain(now, proposals, after, behaviour)}"
    changes = {name: count for name, count in after.items() if count != now[name]}
    if not changes:
        return Recommendation.hold(reason), kept
    return Recommendation(parallelism=now | changes, reason=reason), kept


def overload_where_saturated(observation: Observation, saturates_at: float) -> Callable[[float | None], float]:
    """Reading -> factor on its proposal: arriving over consumed records/s of the job from `saturates_at` on, else 1.

    A saturated metric says "at least this much"; how much more is needed shows only at the sources (thesis 8.3).
    A `saturates_at` of 0 switches it off.
    """
    operators = [observation.operators[name] for name in observation.topology.sources]
    arriving = known_sum(source_arrival_rate(metrics) for metrics in operators)
    excess = max(1.0, ratio(arriving, job_throughput(observation)) or 1.0)
    return lambda value: excess if saturates_at and value is not None and value >= saturates_at else 1.0


def _proposal(parallelism: int, readings: Sequence[Reading], behaviour: Behaviour) -> Proposal | None:
    proposals = [
        Proposal(_desired(parallelism, reading.value, reading, behaviour.tolerance), reading)
        for reading in readings
        if reading.value is not None
    ]
    if not proposals:
        return None
    largest = max(proposals, key=lambda proposal: proposal.instances)
    if behaviour.missing_metric_rules and len(proposals) < len(readings) and largest.instances < parallelism:
        # Kubernetes scales down only if every metric says so, up if any does
        return Proposal(parallelism, largest.reading)
    return largest


def _desired(parallelism: int, value: float, reading: Reading, tolerance: float) -> int:
    use = ratio(value, reading.target) or 0.0
    return parallelism if abs(use - 1.0) <= tolerance else whole_instances(parallelism * use * reading.overload)


def _limited(now: int, desired: int, largest: int, fewest_in_period: int) -> int:
    """Kubernetes' order: only scaling down waits for the window, and no period adds more than its limit."""
    if desired <= now:
        return min(now, largest)
    limit = max(fewest_in_period + STEP_INSTANCES, math.ceil(fewest_in_period * STEP_FACTOR))
    return max(now, min(desired, limit))


def _since(history: _History, start_s: float) -> _History:
    return [entry for entry in history if entry[0] > start_s]


def _largest(history: _History) -> dict[str, int]:
    largest: dict[str, int] = {}
    for _, counts in history:
        for name, count in counts.items():
            if count > largest.get(name, 0):
                largest[name] = count
    return largest


def _fewest(sizes: _History, name: str) -> int:
    return min(int(counts[name]) for _, counts in sizes if name in counts)


def _explain(now: dict[str, int], proposals: dict[str, Proposal], after: dict[str, int], behaviour: Behaviour) -> str:
    changed = [name for name in after if after[name] != now[name]]
    prefix = "" if changed else "no change: "
    shown = sorted(changed or after, key=lambda name: (-abs(after[name] - now[name]), name))
    unknown = [name for name in now if name not in proposals]
    suffix = f"; kept, metrics unknown: {listing(unknown)}" if unknown else ""
    phrases = (_phrase(name, now, proposals[name], after[name], behaviour) for name in shown)
    return prefix + listing(phrases, of=len(shown)) + suffix


def _phrase(name: str, now: dict[str, int], proposal: Proposal, after: int, behaviour: Behaviour) -> str:
    reading = proposal.reading
    text = f"{name} {now[name]} -> {after}, {reading.metric} {number(reading.value or 0)} of {number(reading.target)}"
    if after > proposal.instances:
        text += f", largest of the last {number(behaviour.window_s)} s"
    return text
