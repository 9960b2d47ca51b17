"""A job as one number: the load it carries. What every operator takes in per record that arrives, and what it can.

The load is records/s at all sources together. It is passed along the graph by selectivities that fade over minutes,
because windows put out in bursts. Where a metric is missing, what was known before goes on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.blocking import Blocking, longest_time
from sluice.dataflow.capacity_curve import CapacityCurve
from sluice.dataflow.job_limit import (
    BACKLOG_S,
    LEAST_FULL,
    LEAST_SHARE,
    Limit,
    carried_at_limit,
    is_mostly_overhead,
    slowest_operator,
    with_limit,
)
from sluice.dataflow.numbers import LARGEST
from sluice.dataflow.rates import consumed_rate, edge_rates, pass_along, source_arrival_rate
from sluice.model import Observation, OperatorMetrics, Topology
from sluice.protocol import Memory

FADING_S = 300.0
LEAST_BUSY = 1e-4
SILENT_S = 300.0
"""An operator that has put out nothing for so long, though it took in records, is taken to filter all."""
USUAL_FULL = 0.85
"""Busy share at the limit, until one is seen: engines slow the intake before an instance is busy all the time."""
SHARE_GAIN = 0.2
LIMIT_WEIGHT = 2.0
LEAST_TRUST = 0.4
FULL = 0.98
"""An operator so busy that is not held up takes in no more than there is: its capacity may be larger."""
LIMIT_WINDOWS = 4
"""Of so many windows at the limit the mean counts: where windows fire, one reads nothing and the next a lot."""
NO_FLOW = (0.0, 0.0, 0.0)
JUMP = 0.25
"""Change of the load within a window, from which on the windows before it were of another job."""
ON_TIME = 3.0
"""Trigger intervals a record waits at most where batches are on time: for its batch, in it, and for a late one."""

Flows = dict[str, dict[str, list[float]]]
"""Operator -> successor -> records over the edge, records taken in, seconds observed."""


@dataclass(frozen=True)
class JobModel:
    """`inputs` are records/s into an operator per record/s that arrives; operators of unknown input are left out."""

    load: float | None
    lag: float
    tells_lag: bool
    """Whether any source ever reported how many records wait."""
    shares: dict[str, float]
    flows: Flows
    curves: dict[str, CapacityCurve]
    full: dict[str, float]
    blocking: Blocking
    bounded: tuple[str, ...]
    """Operators that were ever seen with a bounded input: only these hold up who feeds them."""
    topology: Topology
    backlogs: int
    """Windows in a row that began and ended with a backlog."""
    at_limit: float | None
    """Load the present configuration was seen to carry at its limit."""
    limit_windows: int
    limits: list[Limit]
    """What configurations were seen to carry at their limit: none with fewer instances carries more."""
    trust: float
    """What a job at its limit carried, as a share of what its operators' capacities promised."""
    was_limited: bool
    """Whether a window at the limit was ever seen."""
    parallelism: dict[str, int]
    changed_s: float | None
    inputs: dict[str, float]

    @staticmethod
    def learned(
        observation: Observation, memory: Memory, *, bends: bool = True, saturates: bool = True, doubts: bool = True
    ) -> JobModel:
        """With one more window. The switches: whether curves bend, what a window at the limit teaches of busy shares,
        and whether it counts more than the model."""
        now = observation.parallelism
        same = memory.get("parallelism", now) == now
        changed_s = memory.get("changed_s") if same else observation.time_s - observation.interval_s
        topology = observation.topology
        sources = {name: observation.operators[name] for name in topology.sources}
        loads, shares = _loads(sources, memory)
        flows = _flows(observation, memory)
        working = _at_work(observation, changed_s)
        bounded = _bounded(observation, memory)
        reaching = _reaching(topology, shares, flows)
        limit = carried_at_limit(observation, shares, reaching, bounded) if working else None
        backlogs = memory.get("backlogs", 0) * same + 1 if limit is not None else 0
        blocking = Blocking.from_memory(memory.get("blocking", {}))
        if blocking.is_felt and backlogs < LIMIT_WINDOWS:
            # who waits for bursts has a backlog most of the time
            limit = None
        slowest = slowest_operator(observation) if limit is not None and saturates and not blocking.is_felt else None
        full = _full_shares(observation, memory, slowest)
        usual = math.fsum(full.values()) / len(full) if full else USUAL_FULL if saturates else 1.0
        curves = {name: CapacityCurve.from_list(one) for name, one in memory.get("curves", {}).items() if name in now}
        if working:
            curves |= _measured_curves(observation, curves, full, usual, slowest, bends=bends)
        if saturates:
            busy = _busy(observation, full, usual)
            if not working or _jumped(loads, memory):
                blocking = blocking.interrupted()
            blocking = blocking.learned(observation, busy) if working else blocking
        inputs = {name: each for name, each in reaching.items() if name in curves or each == 0}
        at_limit, trust = memory.get("at_limit") if same else None, memory.get("trust", 1.0)
        limits: list[Limit] = list(memory.get("limits", []))
        windows = memory.get("limit_windows", 0) * same
        if limit is not None and doubts and any(inputs.values()):
            windows = min(memory.get("limit_windows", 0) * same + 1, LIMIT_WINDOWS)
            at_limit = limit if at_limit is None else at_limit + (limit - at_limit) / windows
            times = {name: each / curves[name].rate(now[name]) for name, each in inputs.items() if each > 0}
            promised = 1 / longest_time(topology, times, blocking.slack)
            kept = min(1.0, max(LEAST_TRUST, at_limit / promised))
            trust = trust + (kept - trust) / 4 if "limited" in memory else kept
            limits = with_limit(limits, at_limit, now)
        return JobModel(
            load=math.fsum(loads.values()) if loads else None,
            lag=_lag(sources.values(), memory, loads),
            tells_lag=memory.get("tells_lag", False) or any(one.lag is not None for one in sources.values()),
            shares=shares,
            flows=flows,
            curves=curves,
            full=full,
            blocking=blocking,
            bounded=bounded,
            topology=topology,
            backlogs=backlogs,
            at_limit=at_limit,
            limit_windows=windows,
            limits=limits,
            trust=trust,
            was_limited="limited" in memory or limit is not None,
            parallelism=now,
            changed_s=changed_s,
            inputs=inputs,
        )

    def to_memory(self) -> dict[str, Any]:
        return {
            "shares": self.shares,
            "flows": self.flows,
            "curves": {name: curve.to_list() for name, curve in self.curves.items()},
            "full": self.full,
            "blocking": self.blocking.to_memory(),
            "bounded": list(self.bounded),
            "backlogs": self.backlogs,
            "at_limit": self.at_limit,
            "limit_windows": self.limit_windows,
            "limits": self.limits,
            "trust": self.trust,
            **({"limited": True} if self.was_limited else {}),
            "parallelism": self.parallelism,
            "changed_s": self.changed_s,
            "lag": self.lag,
            **({"tells_lag": True} if self.tells_lag else {}),
        }

    @property
    def unknown(self) -> tuple[str, ...]:
        """Operators that keep their instances, because nothing is known of their input or capacity."""
        return tuple(name for name in self.parallelism if name not in self.inputs)

    @property
    def bounds(self) -> tuple[str, ...]:
        """Operators with input of which only a lower bound is known."""
        return tuple(name for name, each in self.inputs.items() if each > 0 and self.curves[name].is_bound)

    def holds_up(self, name: str) -> bool:
        """Whether the sources read less when this operator is too slow; else records wait at its own input."""
        return name in self.bounded or self.topology.is_source(name)


def _full_shares(observation: Observation, memory: Memory, slowest: str | None) -> dict[str, float]:
    """The busy share operators show at their limit, with what this window adds."""
    full = {name: share for name, share in memory.get("full", {}).items() if name in observation.operators}
    if slowest is not None:
        seen = observation.operators[slowest].busy or 1.0
        full[slowest] = (full[slowest] + seen) / 2 if slowest in full else seen
    return full


def _measured_curves(
    observation: Observation,
    curves: Mapping[str, CapacityCurve],
    full: Mapping[str, float],
    usual: float,
    slowest: str | None,
    *,
    bends: bool,
) -> dict[str, CapacityCurve]:
    """The curves of all operators this window says something of."""
    learned = {}
    for name, metrics in observation.operators.items():
        share = full.get(name, usual)
        measured = _measured(metrics, share, at_limit=name == slowest)
        if measured is None:
            continue
        rate, weight = measured
        curve, count = curves.get(name), metrics.parallelism
        if name != slowest and (metrics.busy or 1.0) < LEAST_BUSY:
            # too little work to measure it, and enough to see that fewer would do
            if curve is None:
                learned[name] = CapacityCurve.at_least(count, rate)
            continue
        if name != slowest and is_mostly_overhead(metrics):
            if curve is None or (curve.is_bound and rate > curve.rate(count)):
                learned[name] = CapacityCurve.at_least(count, rate)
            if curve is None or rate <= curve.rate(count) or curve.is_bound:
                continue
        if curve is None or curve.is_bound:
            learned[name] = CapacityCurve.of(count, rate)
            continue
        if name != slowest and (metrics.busy or 0.0) >= FULL * share and not _has_backlog(metrics):
            rate = max(rate, curve.rate(count))
        learned[name] = curve.learned(count, rate, weight, bends=bends, at_limit=name == slowest)
    return learned


def _reaching(topology: Topology, shares: Mapping[str, float], flows: Flows) -> dict[str, float]:
    """Records/s into every operator per record/s that arrives, where that is known."""
    selectivity: dict[str, dict[str, float]] = {}
    for name, edges in flows.items():
        selectivity[name] = passed = {}
        for to, (out, into, seen_s) in edges.items():
            if into > 0 and (out > 0 or seen_s > SILENT_S):
                passed[to] = min(out / into, LARGEST)
    rates = pass_along(topology, {name: shares.get(name) for name in topology.sources}, selectivity)
    return {name: rate for name, rate in rates.items() if rate is not None}


def _loads(sources: Mapping[str, OperatorMetrics], memory: Memory) -> tuple[dict[str, float], dict[str, float]]:
    """Arrival rate of every source and its share of all; of an unknown one what its share says."""
    shares = {name: share for name, share in memory.get("shares", {}).items() if name in sources}
    known = {name: rate for name, one in sources.items() if (rate := source_arrival_rate(one)) is not None}
    if not known:
        return {}, shares
    total = math.fsum(known.values())
    if len(known) < len(sources):
        seen = math.fsum(shares.get(name, 0.0) for name in known)
        if seen >= LEAST_SHARE:
            known |= {name: total / seen * shares.get(name, 0.0) for name in sources if name not in known}
        return known, shares or {name: rate / total for name, rate in known.items() if total > 0}
    if total > 0:
        part = {name: rate / total for name, rate in known.items()}
        shares = {
            name: shares[name] + SHARE_GAIN * (part[name] - shares[name]) if name in shares else part[name]
            for name in sources
        }
    return known, shares


def _flows(observation: Observation, memory: Memory) -> Flows:
    """Fading sums of what went over every edge and of what its operator took in, and since when."""
    keep = math.exp(-observation.interval_s / FADING_S)
    before = memory.get("flows", {})
    flows: Flows = {}
    for name, rates in edge_rates(observation).items():
        flows[name] = edges = dict(before.get(name, ()))
        if not rates or (taken := consumed_rate(observation.operators[name])) is None:
            continue
        for to, rate in rates.items():
            if taken or rate:
                out, into, seen_s = edges.get(to, NO_FLOW)
                edges[to] = [out * keep + rate, into * keep + taken, min(seen_s, SILENT_S) + observation.interval_s]
    return flows


def _bounded(observation: Observation, memory: Memory) -> tuple[str, ...]:
    before = frozenset(memory.get("bounded", ()))
    return tuple(
        name for name, metrics in observation.operators.items() if metrics.buffer_usage is not None or name in before
    )


def _lag(sources: Collection[OperatorMetrics], memory: Memory, loads: Mapping[str, float]) -> float:
    """Records waiting at the sources; of an unknown source nothing, if all are unknown as before.

    Where no source ever reported its lag (files, most of what Spark reads), records wait as long as they are late: by
    Little's law the load times the latency, but for what batches on time make them wait.
    """
    known = [metrics.lag for metrics in sources if metrics.lag is not None]
    if known:
        return math.fsum(known)
    if memory.get("tells_lag"):
        return float(memory.get("lag", 0.0))
    load = math.fsum(loads.values()) if loads else next(iter(memory.get("loads", [])[-1:]), 0.0)
    late_s = [one.latency_s - ON_TIME * (one.batch_interval_s or 0.0) for one in sources if one.latency_s is not None]
    return load * max(0.0, *late_s) if late_s else float(memory.get("lag", 0.0))


def _at_work(observation: Observation, changed_s: float | None) -> bool:
    """Whether the window shows the job rather than its restart."""
    if changed_s is None:
        return True
    cost = observation.action_cost
    downtime_s = cost.downtime_s if cost and cost.downtime_s is not None else 0.0
    return observation.time_s - observation.interval_s >= changed_s + downtime_s


def _jumped(loads: Mapping[str, float], memory: Memory) -> bool:
    """Whether the load is another than in the window before."""
    before = memory.get("loads", [])[-1:]
    return bool(loads and before) and abs(math.fsum(loads.values()) - before[0]) > JUMP * before[0]


def _has_backlog(metrics: OperatorMetrics) -> bool:
    """Whether more waits before an operator than it takes in within a moment."""
    return (metrics.lag or 0.0) > BACKLOG_S * (metrics.input_rate or 0.0)


def _busy(observation: Observation, full: Mapping[str, float], usual: float) -> dict[str, float]:
    """Busy shares, 1 at the limit."""
    return {
        name: min(1.0, metrics.busy / full.get(name, usual))
        for name, metrics in observation.operators.items()
        if metrics.busy is not None
    }


def _measured(metrics: OperatorMetrics, full: float, *, at_limit: bool) -> tuple[float, float] | None:
    """What a window says of an operator's capacity, and how much that counts."""
    if at_limit and metrics.input_rate:
        return metrics.input_rate, LIMIT_WEIGHT
    each = metrics.per_instance_rate()
    if each is None:
        return None
    rate = each * metrics.parallelism * full
    return (rate, min(1.0, (metrics.busy or 1.0) / LEAST_FULL)) if 1e-9 < rate < 1e15 else None
