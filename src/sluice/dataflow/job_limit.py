"""What a job carries at its limit: windows in which records waited all the time, whatever its operators promise."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sluice.dataflow.numbers import LARGEST
from sluice.dataflow.rates import consumed_rate, source_arrival_rate
from sluice.model import Observation, OperatorMetrics

LEAST_FULL = 0.5
BLOCKED = 0.1
BACKLOG_S = 2.0
"""A window that begins and ends with so many seconds of load waiting was at its limit throughout."""
LEAST_SHARE = 1e-6
"""A source of less says nothing about the whole load."""
LIMITS_KEPT = 6
OUTDATED = 1.1
"""What fewer instances once carried, over what these do, from which on it is no longer believed."""

Limit = list[Any]
"""A load and the configuration that carried it at its limit, as JSON has pairs."""


def is_within(smaller: Mapping[str, int], larger: Mapping[str, int]) -> bool:
    """Whether no operator has more instances."""
    return all(count <= larger.get(name, 0) for name, count in smaller.items())


def with_limit(limits: list[Limit], rate: float, now: Mapping[str, int]) -> list[Limit]:
    """With one more; those go that said less of a configuration as large, or much more of one as small."""
    kept = [
        [seen, counts]
        for seen, counts in limits
        if not (is_within(now, counts) and seen < rate) and not (is_within(counts, now) and seen > OUTDATED * rate)
    ]
    return [*(one for one in kept if one[1] != now), [rate, dict(now)]][-LIMITS_KEPT:]


def slowest_operator(observation: Observation) -> str | None:
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


def carried_at_limit(
    observation: Observation,
    shares: Mapping[str, float],
    reaching: Mapping[str, float],
    bounded: Collection[str],
) -> float | None:
    """The load carried in a window that was at its limit throughout; null if it was not.

    Sources read more than that while they fill the bounded inputs behind them, and nothing afterwards: an operator
    whose full input makes them wait shows what the job carries. `shares` are those of the sources in the load,
    `reaching` is what comes to an operator per record/s of it.
    """
    carried = []
    is_behind = False
    for name in observation.topology.sources:
        metrics = observation.operators[name]
        load, taken = source_arrival_rate(metrics), consumed_rate(metrics)
        if not load or shares.get(name, 0.0) < LEAST_SHARE or not _waits_throughout(metrics, load, observation):
            continue
        is_behind = True
        if taken:
            carried.append(min(taken / shares[name], LARGEST))
    if not is_behind:
        return None
    for name in bounded:
        metrics, each = observation.operators[name], reaching.get(name)
        if each and metrics.input_rate and _waits_throughout(metrics, metrics.input_rate, observation):
            carried.append(min(metrics.input_rate / each, LARGEST))
    return min(carried) if carried else None


def _waits_throughout(metrics: OperatorMetrics, rate: float, observation: Observation) -> bool:
    """Whether the window began and ended with a backlog that no batch explains.

    Records that wait for executors that start, or for a batch that has not begun, are no sign of a limit.
    """
    is_blocked = (metrics.backpressure or 0.0) > BLOCKED
    if metrics.lag is None or metrics.lag_rate is None or (is_mostly_overhead(metrics) and not is_blocked):
        return False
    least = rate * max(BACKLOG_S, 1.5 * (metrics.batch_s or 0.0), 1.5 * (metrics.batch_interval_s or 0.0))
    return metrics.lag >= least and metrics.lag - metrics.lag_rate * observation.interval_s >= least


def is_mostly_overhead(metrics: OperatorMetrics) -> bool:
    """Whether it may do more than it shows: tasks of a micro-batch cost something, however few their records."""
    in_batches = metrics.batch_s is not None or metrics.batch_interval_s is not None
    return in_batches and metrics.busy is not None and metrics.busy < LEAST_FULL
