"""Is the job keeping up, catching up or falling behind, and what can its operators do at their limit?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from sluice.dataflow.bottleneck import backpressured
from sluice.dataflow.numbers import LARGEST, number
from sluice.dataflow.rates import arriving_rate, capacity, source_arrival_rate
from sluice.model import Observation, OperatorMetrics

GROWTH = 0.02
"""Lag that grows slower than this share of the arriving load is measurement noise or a start-up."""
SLACK_S = 5.0
"""Lag of so many seconds of load is what batches and buffers hold anyway."""
BACKPRESSURE = 0.1
SAME_LOAD = 0.05
"""Loads closer than this (relative) count as the same."""
WHOLE_WINDOW = 0.75
LEAST_FULL = 0.5
"""A window less busy than this did not show an operator at its limit."""
LEAST_BUSY = 0.05
"""Below this busy share, input / busy says more about the clock than about the operator."""


class ProvisioningState(Enum):
    """Of the whole job."""

    BEHIND = "under-provisioned"
    CATCHING_UP = "catching up"
    KEEPING_UP = "keeping up"


@dataclass(frozen=True)
class Provisioning:
    """The job's state with its numbers in words."""

    state: ProvisioningState
    why: str


def provisioning(observation: Observation) -> Provisioning:
    """Behind if a queue grows by more than noise: beyond what buffers hold anyway, or while something is blocked.

    Backpressure with a shrinking source lag is a job that catches up: its capacity is sufficient. Where the growth of
    no source is known, backpressure alone counts as falling behind, as in the papers; unknown backpressure does not.
    """
    topology = observation.topology
    blocked = {
        name: observation.operators[name].backpressure or 0.0 for name in backpressured(observation, BACKPRESSURE)
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
            return Provisioning(
                ProvisioningState.BEHIND, f"{name}: lag grows by {number(growth)} of {number(load)} rec/s arriving"
            )
        if lag_s is not None and lag_s > longest_s and growth < -GROWTH * load:
            longest_s, longest = lag_s, name
    if longest_s > SLACK_S:
        return Provisioning(ProvisioningState.CATCHING_UP, f"{longest}: {number(longest_s)} s of lag, shrinking")
    if blocked and not growth_known:
        name = max(blocked, key=blocked.__getitem__)
        return Provisioning(ProvisioningState.BEHIND, f"{name}: backpressured {number(blocked[name])} of the time")
    return Provisioning(ProvisioningState.KEEPING_UP, f"none of {len(observation.operators)} queues grows")


def _growth(metrics: OperatorMetrics, is_source: bool) -> float | None:
    """Records/s by which a queue grows: measured, else what arrives at a source and is not read."""
    if metrics.lag_rate is not None:
        return metrics.lag_rate
    if is_source and metrics.arrival_rate is not None and metrics.input_rate is not None:
        return metrics.arrival_rate - metrics.input_rate
    return None


def full_busy_shares(
    observation: Observation, state: ProvisioningState, before: Mapping[str, float]
) -> dict[str, float]:
    """The busy share each operator shows when it is all it can do; operators never seen that way are left out.

    An engine slows the intake before an instance is busy all the time, so `input / busy` promises more than there is
    (thesis 8.3). Learned from windows that began with a backlog and fell further behind: the busiest operator that is
    not known to be blocked was at its limit throughout.
    """
    shares = dict(before)
    if state is not ProvisioningState.BEHIND or not _began_with_lag(observation):
        return shares
    blocked = backpressured(observation, BACKPRESSURE)
    busy = {
        name: metrics.busy
        for name, metrics in observation.operators.items()
        if metrics.busy is not None and name not in blocked
    }
    if busy:
        limiting = max(busy, key=busy.__getitem__)
        if busy[limiting] >= LEAST_FULL:
            shares[limiting] = max(shares.get(limiting, 0.0), busy[limiting])
    return shares


def usual_full_busy(shares: Mapping[str, float]) -> float:
    """What to expect of an operator not seen at its limit yet: the engine is the same for all."""
    return sum(shares.values()) / len(shares) if shares else 1.0


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
    """Whether the window shows a change of parallelism rather than the load: no operator worked most of the time."""
    if before is None or before == observation.parallelism:
        return False
    at_work = [
        metrics.busy + (metrics.backpressure or 0.0)
        for metrics in observation.operators.values()
        if metrics.busy is not None
    ]
    return bool(at_work) and max(at_work) < WHOLE_WINDOW


def same_load(one: dict[str, float] | None, other: dict[str, float] | None) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return False
    return all(abs(one[name] - other[name]) <= SAME_LOAD * max(one[name], other[name]) for name in one)


def processing_abilities(observation: Observation) -> dict[str, float]:
    """`PA = input_rate / busy` (ContTune eq. 1) of all operators that were busy enough to tell."""
    abilities = {}
    for name, metrics in observation.operators.items():
        rate = capacity(metrics)
        busy_enough = metrics.busy is None or metrics.busy >= LEAST_BUSY
        if rate is not None and busy_enough and 1 / LARGEST <= rate <= LARGEST:
            abilities[name] = rate
    return abilities
