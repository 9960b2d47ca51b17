"""Is the job keeping up, catching up, or falling behind? And what would its operators really receive?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from sluice.dataflow.numbers import LARGEST, number, ratio
from sluice.dataflow.rates import arriving_rate, consumed_rate, source_arrival_rate
from sluice.model import Observation, OperatorMetrics

GROWTH = 0.02
"""Lag that grows slower than this share of the arriving load is measurement noise or a start-up."""
SLACK_S = 5.0
"""Lag of so many seconds of load is what batches and buffers hold anyway."""
BACKPRESSURE = 0.1
SAME_LOAD = 0.05
"""Loads closer than this (relative) count as the same."""
MOST_SHORT = 1.25
"""A source that reads even less of what arrives has just started, and its rates say nothing."""
WHOLE_WINDOW = 0.75
LEAST_FULL = 0.5
"""A window less busy than this at its limit was interrupted by something."""
LEAST_BUSY = 0.05
"""Below this busy share, input / busy says more about the clock than about the operator."""


class State(Enum):
    """Of the whole job."""

    BEHIND = "under-provisioned"
    CATCHING_UP = "catching up"
    KEEPING_UP = "keeping up"


@dataclass(frozen=True)
class Provisioning:
    """The job's state with its numbers in words."""

    state: State
    why: str


def provisioning(observation: Observation) -> Provisioning:
    """Behind if a queue grows by more than noise: beyond what buffers hold anyway, or while something is blocked.

    Backpressure with a shrinking source lag is a job that catches up, its capacity is sufficient; backpressure where no
    growth is known of any source is taken for the symptom it is in the papers.
    """
    topology = observation.topology
    blocked = {
        name: share
        for name, metrics in observation.operators.items()
        if (share := metrics.backpressure or 0.0) > BACKPRESSURE
    }
    longest_s, longest = 0.0, ""
    growth_known = False
    for name in topology.order:
        metrics = observation.operators[name]
        is_source = topology.is_source(name)
        load = source_arrival_rate(metrics) if is_source else arriving_rate(metrics)
        growth = _growth(metrics, is_source)
        if growth is None or not load:
            continue
        growth_known = growth_known or is_source
        lag_s = None if metrics.lag is None else metrics.lag / load
        if growth > GROWTH * load and ((is_source and blocked) or lag_s is None or lag_s > SLACK_S):
            return Provisioning(State.BEHIND, f"{name}: lag grows by {number(growth)} of {number(load)} rec/s arriving")
        if lag_s is not None and lag_s > longest_s and growth < -GROWTH * load:
            longest_s, longest = lag_s, name
    if longest_s > SLACK_S:
        return Provisioning(State.CATCHING_UP, f"{longest}: {number(longest_s)} s of lag, shrinking")
    if blocked and not growth_known:
        name = max(blocked, key=lambda found: blocked[found])
        return Provisioning(State.BEHIND, f"{name}: backpressured {number(blocked[name])} of the time")
    return Provisioning(State.KEEPING_UP, f"none of {len(observation.operators)} queues grows")


def _growth(metrics: OperatorMetrics, is_source: bool) -> float | None:
    """Records/s by which a queue grows: measured, else what arrives at a source and is not read."""
    if metrics.lag_rate is not None:
        return metrics.lag_rate
    if is_source and metrics.arrival_rate is not None and metrics.input_rate is not None:
        return metrics.arrival_rate - metrics.input_rate
    return None


def full_busy_shares(observation: Observation, state: State, before: Mapping[str, float]) -> dict[str, float]:
    """The busy share each operator shows when it is all it can do; operators never seen that way are left out.

    An engine slows the intake before an instance is busy all the time, so `input / busy` promises more than there is
    (thesis 8.3). Learned from windows that began with a backlog and fell further behind: whoever was busiest, and
    not blocked itself, was at its limit throughout.
    """
    found = dict(before)
    if state is not State.BEHIND or not _began_with_lag(observation):
        return found
    open_busy = {
        name: metrics.busy
        for name, metrics in observation.operators.items()
        if metrics.busy is not None and (metrics.backpressure or 0.0) <= BACKPRESSURE
    }
    if open_busy:
        limiting = max(open_busy, key=lambda name: open_busy[name])
        if open_busy[limiting] >= LEAST_FULL:
            found[limiting] = max(found.get(limiting, 0.0), open_busy[limiting])
    return found


def usual_full_busy(shares: Mapping[str, float]) -> float:
    """What to expect of an operator not seen at its limit yet: the engine is the same for all."""
    return fmean(shares.values()) if shares else 1.0


def _began_with_lag(observation: Observation) -> bool:
    for name in observation.topology.sources:
        metrics = observation.operators[name]
        load = source_arrival_rate(metrics)
        if metrics.lag is None or metrics.lag_rate is None or not load:
            continue
        if metrics.lag - metrics.lag_rate * observation.interval_s >= load:
            return True
    return False


def interrupted(observation: Observation, before: Mapping[str, int] | None) -> bool:
    """Whether the window shows the change itself: after one, lag grew though nobody was at work most of the time."""
    if before is None or before == observation.parallelism:
        return False
    at_work = [
        metrics.busy + (metrics.backpressure or 0.0)
        for metrics in observation.operators.values()
        if metrics.busy is not None
    ]
    return bool(at_work) and max(at_work) < WHOLE_WINDOW


def source_loads(observation: Observation) -> dict[str, float] | None:
    """Arrival rate of every source; null if one is unknown."""
    found: dict[str, float] = {}
    for name in observation.topology.sources:
        rate = source_arrival_rate(observation.operators[name])
        if rate is None:
            return None
        found[name] = rate
    return found


def same_load(one: dict[str, float] | None, other: dict[str, float] | None) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return False
    return all(abs(one[name] - other[name]) <= SAME_LOAD * max(one[name], other[name]) for name in one)


def real_input_rates(observation: Observation) -> dict[str, float]:
    """Records/s every operator would receive if the job read just what arrives; unknown ones are left out.

    ContTune 4.1: while a job is not under-provisioned, what its operators are seen to receive is the real rate. A
    job that works off a backlog reads more than arrives, one that is a hair too small reads less; the rates are
    scaled by that ratio.
    """
    loads = source_loads(observation)
    read = [consumed_rate(observation.operators[name]) for name in observation.topology.sources]
    consumed = sum(rate or 0.0 for rate in read)
    read_short = None if loads is None else ratio(sum(loads.values()), consumed)
    scale = 1.0 if read_short is None else min(read_short, MOST_SHORT)
    rates: dict[str, float] = {}
    for name, metrics in observation.operators.items():
        found = loads[name] if loads is not None and name in loads else arriving_rate(metrics)
        if found is not None:
            rates[name] = found if loads is not None and name in loads else found * scale
    return rates


def processing_abilities(observation: Observation) -> dict[str, float]:
    """`PA = input_rate / busy` (ContTune eq. 1) of all operators that were busy enough to tell."""
    found = {}
    for name, metrics in observation.operators.items():
        rate = metrics.per_instance_rate()
        told = metrics.busy is None or metrics.busy >= LEAST_BUSY
        if rate is not None and told and 1 / LARGEST <= rate * metrics.parallelism <= LARGEST:
            found[name] = rate * metrics.parallelism
    return found
