"""The autoscaler of the Flink Kubernetes operator, as its users run it.

Its model is DS2's (true rates, one pass along the graph); what it adds is room: a utilisation below 1, time to catch
up, a band in which nothing happens, and reluctance to scale down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sluice.dataflow.numbers import listing, number, ratio, whole_instances
from sluice.dataflow.rates import selectivities
from sluice.model import Observation, Recommendation
from sluice.policies.ds2 import target_rates
from sluice.policy import Memory, policy
from sluice.registry import parameter

PARTS = 15
"""Averages are kept per part of the metric window: a minute of the fifteen."""
KEYS = ("rates", "each")


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
    operator is outside what the band of utilisations asks for, all wishes are applied, else none.
    """

    target_utilisation: float = parameter(0.7, "share of its capacity an operator should need")
    utilisation_band: float = parameter(0.3, "how far the utilisation may be off before anything happens")
    catch_up_s: float = parameter(1800.0, "time in which lag should be drained")
    restart_s: float = parameter(300.0, "time a rescale is taken to stop the job, made good within the catch-up time")
    scale_down_delay_s: float = parameter(3600.0, "time a wish to shrink must last; the largest wish of it is applied")
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
        selectivity = {name: {**earlier.get(name, {}), **seen} for name, seen in selectivities(observation).items()}
        kept = _after_rescale(memory, now, time_s) | {"selectivity": selectivity, "parallelism": now}
        quiet_s = math.inf if kept["rescaled_s"] is None else time_s - kept["rescaled_s"]
        if quiet_s < self.stabilisation_s:
            told = f"flink: {number(quiet_s)} of {number(self.stabilisation_s)} s since the last rescale"
            return Recommendation.hold(told), kept

        loads, kept["windows"] = self._loads(observation, selectivity, kept["windows"])
        kept["true_rates"] = {name: load.true_rate for name, load in loads.items()}
        kept["shrinking"] = dict(kept["shrinking"])
        if not loads:
            return Recommendation.hold(f"flink: no true rate or no load known of any of {len(now)} operators"), kept
        wish, notes = {}, []
        for name, load in loads.items():
            wish[name], note = self._wish(name, now[name], load, kept, time_s)
            notes += [note] if note else []
        outside = [name for name in wish if wish[name] != now[name] and not self._inside_band(loads[name])]
        shown = outside or list(loads)
        told = listing((self._sentence(name, now[name], wish[name], loads[name]) for name in shown), of=len(shown))
        if not outside:
            return Recommendation.hold(f"flink: nobody to change outside the band: {told}{_noted(notes)}"), kept
        return Recommendation(parallelism=now | wish, reason=f"flink: outside the band: {told}{_noted(notes)}"), kept

    def _loads(
        self, observation: Observation, selectivity: dict[str, dict[str, float]], windows: list[dict[str, Any]]
    ) -> tuple[dict[str, _Load], list[dict[str, Any]]]:
        """Averages over the metric window, and the windows to remember for it."""
        plain = target_rates(observation, selectivity)
        hurried = target_rates(observation, selectivity, self.catch_up_s)
        seen = {
            "time_s": observation.time_s,
            "count": 1,
            "rates": [plain[name] for name in observation.operators],
            "each": [metrics.per_instance_rate() for metrics in observation.operators.values()],
        }
        start_s = observation.time_s - self.metric_window_s
        recent = _gathered([window for window in windows if window["time_s"] > start_s], seen, self.metric_window_s)
        rates, each = (_means(recent, key) for key in KEYS)
        loads = {}
        for (name, metrics), rate, one in zip(observation.operators.items(), rates, each, strict=True):
            total, base = hurried[name], plain[name]
            if not math.isnan(rate) and one > 0 and total is not None and base is not None:
                loads[name] = _Load(rate, total - base, one * metrics.parallelism)
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

    def _wish(self, name: str, now: int, load: _Load, kept: dict[str, Any], time_s: float) -> tuple[int, str]:
        factor = ratio(self._capacity(load, self.target_utilisation), load.true_rate) or 0.0
        wanted = self._aligned(whole_instances(now * max(factor, 1 - self.max_scale_down_factor)))
        if wanted >= now:
            kept["shrinking"].pop(name, None)
            if wanted > now and self._ineffective(load, kept["grown"].get(name)):
                return now, f"{name} stays: its last scale-up brought less than {self.effectiveness_threshold:.0%}"
            return wanted, ""
        since_s, largest = kept["shrinking"].get(name, [time_s, wanted])
        largest = max(largest, wanted)
        kept["shrinking"][name] = [since_s, largest]
        if time_s - since_s < self.scale_down_delay_s:
            return now, f"{name} may shrink to {largest} in {number(self.scale_down_delay_s - time_s + since_s)} s"
        return largest, ""

    def _ineffective(self, load: _Load, grown: list[float] | None) -> bool:
        if grown is None or not self.effectiveness_threshold:
            return False
        before, expected = grown
        return load.true_rate - before < self.effectiveness_threshold * (expected - before)

    def _aligned(self, wanted: int) -> int:
        """The next divisor of the partitions, so that each instance gets equally many."""
        if not self.key_groups:
            return wanted
        wanted = min(wanted, self.key_groups)
        candidates = range(wanted, self.key_groups // 2 + 1)
        return next((count for count in candidates if self.key_groups % count == 0), wanted)

    def _sentence(self, name: str, before: int, after: int, load: _Load) -> str:
        required = self._capacity(load, self.target_utilisation)
        return f"{name} {before} -> {after}, can take {number(load.true_rate)} of {number(required)} rec/s required"


def _after_rescale(memory: Memory, now: dict[str, int], time_s: float) -> dict[str, Any]:
    """Memory carried over; after a rescale the averages start anew and what the growth should bring is noted."""
    before: Mapping[str, int] = memory.get("parallelism", now)
    kept: dict[str, Any] = {
        key: memory.get(key, empty)
        for key, empty in (("windows", []), ("shrinking", {}), ("grown", {}), ("true_rates", {}), ("rescaled_s", None))
    }
    if before == now:
        return kept
    rates: Mapping[str, float] = kept["true_rates"]
    changed = {name for name in now if before.get(name) != now[name]}
    grown = {
        name: [rates[name], rates[name] * now[name] / before[name]]
        for name in sorted(changed)
        if name in rates and now[name] > before[name]
    }
    return kept | {
        "windows": [],
        "rescaled_s": time_s,
        "shrinking": {name: entry for name, entry in kept["shrinking"].items() if name not in changed},
        "grown": {name: entry for name, entry in kept["grown"].items() if name not in changed} | grown,
    }


def _gathered(windows: list[dict[str, Any]], seen: dict[str, Any], span_s: float) -> list[dict[str, Any]]:
    """The window added; those within the same part of the span become one, so that no memory holds many."""
    part_s = span_s / PARTS
    if not windows or windows[-1]["time_s"] // part_s != seen["time_s"] // part_s:
        return [*windows, seen]
    *earlier, last = windows
    share = 1 / (last["count"] + 1)
    joined = {key: [_joined(old, new, share) for old, new in zip(last[key], seen[key], strict=True)] for key in KEYS}
    return [*earlier, {"time_s": seen["time_s"], "count": last["count"] + 1, **joined}]


def _joined(old: float | None, new: float | None, share: float) -> float | None:
    if old is None or new is None:
        return new if old is None else old
    return old + (new - old) * share


def _means(windows: list[dict[str, Any]], key: str) -> list[float]:
    """Mean per operator over the windows that know it; not a number where none does."""
    table = np.array([window[key] for window in windows], dtype=np.float64)
    weight = np.where(np.isnan(table), 0.0, np.array([[window["count"]] for window in windows]))
    total, count = (np.nan_to_num(table) * weight).sum(axis=0), weight.sum(axis=0)
    means: list[float] = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0).tolist()
    return means


def _noted(notes: list[str]) -> str:
    return f" ({listing(notes, limit=2)})" if notes else ""
