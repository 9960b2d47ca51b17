"""The autoscaler of the Flink Kubernetes operator, as its users run it.

Its model is DS2's (true rates, one pass along the graph); what it adds is room: a utilisation below 1, time to catch
up, a band in which nothing happens, and reluctance to scale down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.numbers import listing, number, ratio, whole_instances
from sluice.dataflow.rates import EdgeValues, selectivities, target_rates
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

PARTS = 15
"""Averages are kept per part of the metric window: a minute of the fifteen."""
KEYS = ("rate", "each")

_Samples = list[dict[str, Any]]


@dataclass(frozen=True)
class _Load:
    """Averages of one operator: what it must take in, how much more to catch up, what it can take in now."""

    rate: float
    catch_up_rate: float
    true_rate: float


@policy("flink")
@dataclass(frozen=True, kw_only=True)
class Flink:
    """Capacity for the load at a target utilisation, with room to catch up; patient about scaling down.

    required capacity = `rate / target_utilisation + lag / catch_up_s + rate * restart_s / catch_up_s`, rates and true
    rates averaged over `metric_window_s`; instances = `ceil(p * required / true rate)`. If the true rate of any
    operator is outside what the band of utilisations requires, all operators change, else none.
    """

    target_utilisation: float = parameter(0.7, "share of its capacity an operator should need")
    utilisation_band: float = parameter(0.3, "how far the utilisation may be off before anything happens")
    catch_up_s: float = parameter(1800.0, "time in which lag should be drained")
    restart_s: float = parameter(300.0, "time a rescale is taken to stop the job, made good within the catch-up time")
    scale_down_delay_s: float = parameter(
        3600.0, "time an operator must be too large before it shrinks, to the most it needed in that time"
    )
    max_scale_down_factor: float = parameter(0.6, "largest share of an operator's instances removed at once")
    effectiveness_threshold: float = parameter(
        0.1, "a scale-up that brought less than this share of the expected rate is not followed by another; 0 is off"
    )
    key_groups: int = parameter(
        0, "round up to a divisor of this number of partitions, where one lies below half of it; 0 is off"
    )
    metric_window_s: float = parameter(900.0, "time over which rates are averaged, since the last rescale")
    stabilisation_s: float = parameter(300.0, "time after a rescale whose metrics are ignored")

    def __post_init__(self) -> None:
        if not 0 < self.target_utilisation <= 1:
            raise ValueError(f"target_utilisation must be in (0, 1], got {self.target_utilisation}")
        for name in ("utilisation_band", "max_scale_down_factor", "effectiveness_threshold"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("catch_up_s", "metric_window_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("restart_s", "scale_down_delay_s", "stabilisation_s", "key_groups"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now, time_s = observation.parallelism, observation.time_s
        earlier = memory.get("selectivity", {})
        selectivity = {name: {**earlier.get(name, {}), **edges} for name, edges in selectivities(observation).items()}
        kept = _after_rescale(memory, now, time_s) | {"selectivity": selectivity, "parallelism": now}
        since_s = math.inf if kept["rescaled_s"] is None else time_s - kept["rescaled_s"]
        if since_s < self.stabilisation_s:
            progress = f"{number(since_s)} of {number(self.stabilisation_s)} s since the last rescale"
            return Recommendation.hold(f"flink: {progress}"), kept

        loads, kept["samples"] = self._loads(observation, selectivity, kept["samples"])
        kept["true_rates"] = {name: load.true_rate for name, load in loads.items()}
        kept["shrinking"] = dict(kept["shrinking"])
        if not loads:
            return Recommendation.hold(f"flink: no true rate or no load known of any of {len(now)} operators"), kept
        after, notes = {}, []
        for name, load in loads.items():
            after[name], note = self._instances(name, now[name], load, kept, time_s)
            notes += [note] if note else []
        outside = [name for name in after if after[name] != now[name] and not self._inside_band(loads[name])]
        shown = outside or list(loads)
        details = listing((self._phrase(name, now[name], after[name], loads[name]) for name in shown), of=len(shown))
        if not outside:
            return Recommendation.hold(f"flink: no change outside the band: {details}{_noted(notes)}"), kept
        return Recommendation(
            parallelism=now | after, reason=f"flink: outside the band: {details}{_noted(notes)}"
        ), kept

    def _loads(
        self, observation: Observation, selectivity: EdgeValues, samples: _Samples
    ) -> tuple[dict[str, _Load], _Samples]:
        """Averages over the metric window, and the samples to remember for it."""
        targets = target_rates(observation, selectivity)
        catching_up = target_rates(observation, selectivity, self.catch_up_s)
        sample = {
            "time_s": observation.time_s,
            "count": 1,
            "rate": targets,
            "each": {name: metrics.per_instance_rate() for name, metrics in observation.operators.items()},
        }
        start_s = observation.time_s - self.metric_window_s
        recent = _joined([one for one in samples if one["time_s"] > start_s], sample, self.metric_window_s)
        loads = {}
        for name, metrics in observation.operators.items():
            rate, each = (_mean(recent, key, name) for key in KEYS)
            total, base = catching_up[name], targets[name]
            if rate is not None and each and total is not None and base is not None:
                loads[name] = _Load(rate, total - base, each * metrics.parallelism)
        return loads, recent

    def _capacity(self, load: _Load, utilisation: float, *, restart: bool = True) -> float:
        if utilisation <= 0:
            return math.inf
        made_good = load.rate * self.restart_s / self.catch_up_s if restart else 0.0
        return load.rate / min(utilisation, 1.0) + load.catch_up_rate + made_good

    def _inside_band(self, load: _Load) -> bool:
        least = self._capacity(load, self.target_utilisation + self.utilisation_band, restart=False)
        most = self._capacity(load, self.target_utilisation - self.utilisation_band)
        return least <= load.true_rate <= most

    def _instances(self, name: str, now: int, load: _Load, kept: dict[str, Any], time_s: float) -> tuple[int, str]:
        """What to recommend for one operator, and a note where that is not what its load needs."""
        factor = ratio(self._capacity(load, self.target_utilisation), load.true_rate) or 0.0
        needed = self._aligned(whole_instances(now * max(factor, 1 - self.max_scale_down_factor)))
        if needed >= now:
            kept["shrinking"].pop(name, None)
            if needed > now and self._ineffective(load, kept["grown"].get(name)):
                return now, f"{name} stays: its last scale-up brought less than {self.effectiveness_threshold:.0%}"
            return needed, ""
        since_s, largest = kept["shrinking"].get(name, [time_s, needed])
        largest = max(largest, needed)
        kept["shrinking"][name] = [since_s, largest]
        if time_s - since_s < self.scale_down_delay_s:
            return now, f"{name} may shrink to {largest} in {number(self.scale_down_delay_s - time_s + since_s)} s"
        return largest, ""

    def _ineffective(self, load: _Load, grown: list[float] | None) -> bool:
        if grown is None or not self.effectiveness_threshold:
            return False
        before, expected = grown
        return load.true_rate - before < self.effectiveness_threshold * (expected - before)

    def _aligned(self, needed: int) -> int:
        """The next divisor of the partitions, so that each instance gets equally many."""
        if not self.key_groups:
            return needed
        needed = min(needed, self.key_groups)
        candidates = range(needed, self.key_groups // 2 + 1)
        return next((count for count in candidates if self.key_groups % count == 0), needed)

    def _phrase(self, name: str, before: int, after: int, load: _Load) -> str:
        required = self._capacity(load, self.target_utilisation)
        return f"{name} {before} -> {after}, can take {number(load.true_rate)} of {number(required)} rec/s required"


def _after_rescale(memory: Memory, now: dict[str, int], time_s: float) -> dict[str, Any]:
    """Memory carried over; after a rescale the averages start anew, and what each growth should bring is noted."""
    before: Mapping[str, int] = memory.get("parallelism", now)
    kept: dict[str, Any] = {
        key: memory.get(key, empty)
        for key, empty in (("samples", []), ("shrinking", {}), ("grown", {}), ("true_rates", {}), ("rescaled_s", None))
    }
    if before == now:
        return kept
    rates: Mapping[str, float] = kept["true_rates"]
    changed = {name for name in now if before.get(name) != now[name]}
    grown = {
        name: [rates[name], rates[name] * now[name] / before[name]]
        for name in sorted(changed)
        if name in rates and name in before and now[name] > before[name]
    }
    return kept | {
        "samples": [],
        "rescaled_s": time_s,
        "shrinking": {name: entry for name, entry in kept["shrinking"].items() if name not in changed},
        "grown": {name: entry for name, entry in kept["grown"].items() if name not in changed} | grown,
    }


def _joined(samples: _Samples, new: dict[str, Any], span_s: float) -> _Samples:
    """The new sample added; those within the same part of the span become one, so that memory stays small."""
    part_s = span_s / PARTS
    if not samples or samples[-1]["time_s"] // part_s != new["time_s"] // part_s:
        return [*samples, new]
    *earlier, last = samples
    share = 1 / (last["count"] + 1)
    means = {key: {name: _moved(last[key][name], new[key][name], share) for name in new[key]} for key in KEYS}
    return [*earlier, {"time_s": new["time_s"], "count": last["count"] + 1, **means}]


def _moved(old: float | None, new: float | None, share: float) -> float | None:
    if old is None or new is None:
        return new if old is None else old
    return old + (new - old) * share


def _mean(samples: _Samples, key: str, name: str) -> float | None:
    """Weighted mean of the samples that know it."""
    known = [(sample[key][name], sample["count"]) for sample in samples if sample[key][name] is not None]
    return sum(value * count for value, count in known) / sum(count for _, count in known) if known else None


def _noted(notes: list[str]) -> str:
    return f" ({listing(notes, limit=2)})" if notes else ""
