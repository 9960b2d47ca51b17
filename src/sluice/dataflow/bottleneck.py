"""Who holds the job up: signs of overload, and the walk from where they show to their cause (thesis 6.7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluice.dataflow.numbers import known_sum
from sluice.dataflow.rates import consumed_rate
from sluice.model import Observation, OperatorMetrics

MOST_BACKPRESSURE = 0.9
"""Held back b of the time, an operator asks for 1 / (1 - b) times as much; at 1 that has no bound, so it is cut off."""


def backpressured(observation: Observation, threshold: float) -> tuple[str, ...]:
    """Operators blocked by what is downstream of them for more than this share of the window."""
    return tuple(
        name
        for name, metrics in observation.operators.items()
        if metrics.backpressure is not None and metrics.backpressure > threshold
    )


def topic_readers(observation: Observation) -> dict[str, OperatorMetrics]:
    """Operators that read a queue without a bound: sources always, others where topics lie between operators.

    The filling of a bounded buffer is no backlog: it moves by a few records and ends in backpressure.
    """
    topology = observation.topology
    return {
        name: metrics
        for name, metrics in observation.operators.items()
        if metrics.buffer_usage is None or topology.is_source(name)
    }


def falling_behind(observation: Observation, lag_rate_threshold: float) -> tuple[str, ...]:
    """Operators whose topic grows faster than this many records/s."""
    return tuple(
        name
        for name, metrics in topic_readers(observation).items()
        if metrics.lag_rate is not None and metrics.lag_rate > lag_rate_threshold
    )


def walk_downstream(observation: Observation, blocked: Iterable[str]) -> tuple[str, ...]:
    """The first operators downstream of the blocked ones that are not blocked themselves, in topological order.

    On a straight line that is one operator. A blocked sink has nobody downstream: what blocks it is outside the job.
    """
    topology = observation.topology
    held_up = set(blocked)
    causes = {to for name in held_up for to in topology.successors[name] if to not in held_up}
    return tuple(name for name in topology.order if name in causes)


def upstream_backpressure(observation: Observation, names: Iterable[str]) -> dict[str, float]:
    """Per operator the largest backpressure among those that feed it; 0 if none reports any."""
    topology = observation.topology
    return {
        name: max(observation.operators[feeding].backpressure or 0.0 for feeding in topology.predecessors[name])
        for name in names
    }


def worst(observation: Observation, urgency: Mapping[str, float]) -> str:
    """The most urgent; of several behind one blocked operator, the busiest is the one that blocks it."""

    def key(name: str) -> tuple[float, float, float]:
        metrics = observation.operators[name]
        return urgency[name], metrics.busy or 0.0, metrics.buffer_usage or 0.0

    return max(urgency, key=key)


def job_throughput(observation: Observation) -> float | None:
    """Records/s all sources read together."""
    return known_sum(consumed_rate(observation.operators[name]) for name in observation.topology.sources)
