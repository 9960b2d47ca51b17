"""A job as one number: the load it carries. What every operator takes in per record that arrives, and what it can.

The load is records/s at all sources together. It is passed along the graph by selectivities that fade over minutes,
because windows put out in bursts. Where a metric is missing, what was known before goes on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.capacity_curve import CapacityCurve
from sluice.dataflow.rates import consumed_rate, edge_rates, pass_along, source_arrival_rate
from sluice.model import Observation, OperatorMetrics
from sluice.protocol import Memory

FADING_S = 300.0
LEAST_BUSY = 1e-4
SILENT_S = 300.0
"""An operator that has put out nothing for so long, though it took in records, is taken to filter all."""
LEAST_FULL = 0.5
BLOCKED = 0.1
BACKLOG_S = 2.0
"""A window that begins and ends with so many seconds of load waiting was at its limit throughout."""
USUAL_FULL = 0.85
"""Busy share at the limit, until one is seen: engines slow the intake before an instance is busy all the time."""
SHARE_GAIN = 0.2
LIMIT_WEIGHT = 2.0
LEAST_TRUST = 0.4


@dataclass(frozen=True)
class JobModel:
    """`inputs` are records/s into an operator per record/s that arrives; operators of unknown input are left out."""

    load: float | None
    lag: float
    shares: dict[str, float]
    flows: dict[str, dict[str, list[float]]]
    curves: dict[str, CapacityCurve]
    full: dict[str, float]
    at_limit: float | None
    """Load the present configuration was seen to carry at its limit."""
    trust: float
    """What a job at its limit carried, as a share of what its operators' capacities promised."""
    parallelism: dict[str, int]
    changed_s: float | None
    inputs: dict[str, float]

    @staticmethod
    def learned(
        observation: Observation, memory: Memory, *, bends: bool = True, saturates: bool = True, doubts: bool = True
    ) -> JobModel:
        now = observation.parallelism
        before = memory.get("parallelism")
        same = before is None or before == now
        changed_s = memory.get("changed_s") if same else observation.time_s - observation.interval_s
        loads, shares = _loads(observation, memory)
        load = math.fsum(loads.values()) if loads else None
        flows = _flows(observation, memory)
        selectivity = {
            name: {to: out / into for to, (out, into, seen_s) in flows.get(name, {}).items() if out > 0 or seen_s > SILENT_S}
            for name in observation.operators
        }
        known = pass_along(observation.topology, {n: shares.get(n) for n in observation.topology.sources}, selectivity)
        inputs = {name: rate for name, rate in known.items() if rate is not None}
        lag = _lag(observation, memory, load)
        working = _at_work(observation, changed_s)
        limit = _limit(observation, shares) if working else None
        full = dict(memory.get("full", {}))
        slowest = _slowest(observation) if limit is not None and saturates else None
        if slowest is not None:
            seen = observation.operators[slowest].busy or 1.0
            full[slowest] = (full[slowest] + seen) / 2 if slowest in full else seen
        usual = math.fsum(full.values()) / len(full) if full else USUAL_FULL if saturates else 1.0
        curves = {name: CapacityCurve.from_list(values) for name, values in memory.get("curves", {}).items() if name in now}
        if working:
            for name, metrics in observation.operators.items():
                measured = _measured(metrics, full.get(name, usual), at_limit=name == slowest)
                if measured is not None:
                    rate, weight = measured
                    curve = curves.get(name)
                    curves[name] = (
                        CapacityCurve.of(now[name], rate)
                        if curve is None
                        else curve.learned(now[name], rate, weight, bends=bends)
                    )
        at_limit = memory.get("at_limit") if same else None
        trust = memory.get("trust")
        inputs = {name: rate for name, rate in inputs.items() if name in curves or rate == 0}
        if limit is not None and doubts and any(inputs.values()):
            at_limit = limit if at_limit is None else (at_limit + limit) / 2
            promised = min(curves[name].rate(now[name], 0.0) / each for name, each in inputs.items() if each > 0)
            kept = min(1.0, max(LEAST_TRUST, limit / promised))
            trust = kept if trust is None else (trust + kept) / 2
        return JobModel(load, lag, shares, flows, curves, full, at_limit, trust or 1.0, now, changed_s, inputs)

    def to_memory(self) -> dict[str, Any]:
        return {
            "shares": self.shares,
            "flows": self.flows,
            "curves": {name: curve.to_list() for name, curve in self.curves.items()},
            "full": self.full,
            "at_limit": self.at_limit,
            "trust": self.trust,
            "parallelism": self.parallelism,
            "changed_s": self.changed_s,
            "lag": self.lag,
        }

    def carried(self, parallelism: Mapping[str, int], caution: float) -> float:
        """The load a configuration carries: that of its slowest operator; at the limit as it was seen."""
        if self.at_limit is not None and parallelism == self.parallelism:
            return self.at_limit
        promised = min(
            self.curves[name].rate(parallelism[name], caution) / each for name, each in self.inputs.items() if each > 0
        )
        return promised * self.trust

    def sized(self, load: float, now: Mapping[str, int], caution: float) -> dict[str, int]:
        """The fewest instances of every operator that carry a load; those of unknown capacity stay."""
        limits = [
            curve.rate(curve.instances, 0.0) / self.inputs[name]
            for name, curve in self.curves.items()
            if self.inputs.get(name) and curve.is_limited
        ]
        load = min([load / self.trust, *limits])
        return {name: self._instances(name, count, load, caution) for name, count in now.items()}

    def _instances(self, name: str, now: int, load: float, caution: float) -> int:
        each = self.inputs.get(name)
        if each is None:
            return now
        return self.curves[name].instances_for(load * each, caution) if each > 0 else 1

    @property
    def unknown(self) -> tuple[str, ...]:
        """Operators that keep their instances, because nothing is known of their input or capacity."""
        return tuple(name for name in self.parallelism if name not in self.inputs)


def _loads(observation: Observation, memory: Memory) -> tuple[dict[str, float], dict[str, float]]:
    """Arrival rate of every source and its share of all; of an unknown one what its share says."""
    shares = dict(memory.get("shares", {}))
    sources = observation.topology.sources
    known = {
        name: rate
        for name in sources
        if (rate := source_arrival_rate(observation.operators[name])) is not None
    }
    if not known:
        return {}, shares
    total = math.fsum(known.values())
    if len(known) < len(sources):
        seen = math.fsum(shares.get(name, 0.0) for name in known)
        if seen > 0:
            known |= {name: total / seen * shares.get(name, 0.0) for name in sources if name not in known}
        return known, shares or {name: rate / total for name, rate in known.items() if total > 0}
    if total > 0:
        part = {name: rate / total for name, rate in known.items()}
        shares = {
            name: shares[name] + SHARE_GAIN * (part[name] - shares[name]) if name in shares else part[name]
            for name in sources
        }
    return known, shares


def _flows(observation: Observation, memory: Memory) -> dict[str, dict[str, list[float]]]:
    """Per edge, fading sums of what went over it and of what its operator took in."""
    keep = math.exp(-observation.interval_s / FADING_S)
    before = memory.get("flows", {})
    flows: dict[str, dict[str, list[float]]] = {}
    for name, rates in edge_rates(observation).items():
        taken = consumed_rate(observation.operators[name])
        old = before.get(name, {})
        flows[name] = dict(old)
        if taken:
            for to, rate in rates.items():
                out, into, seen_s = old.get(to, (0.0, 0.0, 0.0))
                flows[name][to] = [out * keep + rate, into * keep + taken, min(seen_s, SILENT_S) + observation.interval_s]
    return flows


def _lag(observation: Observation, memory: Memory, load: float | None) -> float:
    """Records waiting at the sources; of an unknown source nothing, if all are unknown as before."""
    known = [
        lag for name in observation.topology.sources if (lag := observation.operators[name].lag) is not None
    ]
    return math.fsum(known) if known else float(memory.get("lag", 0.0))


def _at_work(observation: Observation, changed_s: float | None) -> bool:
    """Whether the window shows the job rather than its restart."""
    if changed_s is None:
        return True
    cost = observation.action_cost
    downtime_s = cost.downtime_s if cost and cost.downtime_s is not None else 0.0
    return observation.time_s - observation.interval_s >= changed_s + downtime_s


def _limit(observation: Observation, shares: Mapping[str, float]) -> float | None:
    """The load carried in a window that was at its limit throughout; null if it was not."""
    carried = []
    for name in observation.topology.sources:
        metrics = observation.operators[name]
        load, taken = source_arrival_rate(metrics), consumed_rate(metrics)
        if metrics.lag is None or metrics.lag_rate is None or not load or not taken or not shares.get(name):
            continue
        least = load * max(BACKLOG_S, 1.5 * (metrics.batch_s or 0.0), 1.5 * (metrics.batch_interval_s or 0.0))
        began = metrics.lag - metrics.lag_rate * observation.interval_s
        if metrics.lag >= least and began >= least:
            carried.append(taken / shares[name])
    return min(carried) if carried else None


def _slowest(observation: Observation) -> str | None:
    """The busiest operator that nothing downstream holds up, of a job at its limit."""
    busy = {
        name: metrics.busy
        for name, metrics in observation.operators.items()
        if metrics.busy is not None and (metrics.backpressure or 0.0) <= BLOCKED
    }
    if not busy:
        return None
    name = max(busy, key=busy.__getitem__)
    return name if busy[name] >= LEAST_FULL else None


def _measured(metrics: OperatorMetrics, full: float, *, at_limit: bool) -> tuple[float, float] | None:
    """What a window says of an operator's capacity, and how much that counts."""
    if at_limit and metrics.input_rate:
        return metrics.input_rate, LIMIT_WEIGHT
    each = metrics.per_instance_rate()
    if each is None or (metrics.busy is not None and metrics.busy < LEAST_BUSY):
        return None
    rate = each * metrics.parallelism * full
    return (rate, min(1.0, (metrics.busy or 1.0) / LEAST_FULL)) if 1e-9 < rate < 1e15 else None
