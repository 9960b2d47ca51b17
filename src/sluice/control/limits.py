"""How large a job may become, as policies are told it."""

from __future__ import annotations

from sluice.control.guards import Guards
from sluice.model import Graph


def most_slots(guards: Guards, graph: Graph) -> int | None:
    """Of all operators together; null without a limit. Operators that share their instances have them all at once."""
    operators = len(graph.names)
    limits = [] if guards.max_slots is None else [guards.max_slots * (operators if graph.shared else 1)]
    highs = [
        min((high for high in (guards.max_parallelism, one.max_parallelism) if high is not None), default=None)
        for one in graph.operators
    ]
    known = [high for high in highs if high is not None]
    if known and len(known) == len(highs):
        limits.append(sum(known))
    return max(operators, min(limits)) if limits else None
