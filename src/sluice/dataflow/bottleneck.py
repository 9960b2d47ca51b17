"""Which operator slows the job down: signs of overload, and the operators that cause them (thesis 6.7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluice.dataflow.rates import topic_readers
from sluice.model import Observation

MOST_BACKPRESSURE = 0.9
"""`1 / (1 - b)` has no bound at b = 1, so b is cut off here."""


def backpressured(observation: Observation, threshold: float) -> tuple[str, ...]:
    """Operators known to be blocked by what is downstream of them for more than this share of the window."""
    return tuple(
        name
        for name, metrics in observation.operators.items()
        if metrics.backpressure is not None and metrics.backpressure > threshold
    )


def falling_behind(observation: Observation, lag_rate_threshold: float) -> tuple[str, ...]:
    """Operators whose topic grows faster than this many records/s."""
    return tuple(
        name
        for name, metrics in topic_readers(observation).items()
        if metrics.lag_rate is not None and metrics.lag_rate > lag_rate_threshold
    )


def walk_downstream(observation: Observation, blocked: Iterable[str]) -> tuple[str, ...]:
    """The first operators downstream of the blocked ones that are not known to be blocked, in topological order.

    On a straight line that is one operator. A blocked sink has no successor: what blocks it is outside the job.
    """
    topology = observation.topology
    held_up = set(blocked)
    causes = {to for name in held_up for to in topology.successors[name] if to not in held_up}
    return tuple(name for name in topology.order if name in causes)


def upstream_backpressure(observation: Observation, names: Iterable[str]) -> dict[str, float]:
    """Per operator the largest backpressure among those that feed it; left out where none is known."""
    topology = observation.topology
    largest: dict[str, float] = {}
    for name in names:
        feeding = (observation.operators[up].backpressure for up in topology.predecessors[name])
        known = [share for share in feeding if share is not None]
        if known:
            largest[name] = max(known)
    return largest


def blocked_factor(backpressure: float) -> float:
    """How many times as much an operator would pass on if nothing downstream blocked it: `1 / (1 - b)`."""
    return 1 / (1 - min(backpressure, MOST_BACKPRESSURE))


def most_urgent(observation: Observation, urgency: Mapping[str, float]) -> str:
    """The largest urgency; of several behind one blocked operator, the busiest is the one that blocks it."""

    def key(name: str) -> tuple[float, float, float]:
        metrics = observation.operators[name]
        return urgency[name], metrics.busy or 0.0, metrics.buffer_usage or 0.0

    return max(urgency, key=key)
