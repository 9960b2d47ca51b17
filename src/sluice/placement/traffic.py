"""What leaves a worker: the share of an operator's links there that end on another one."""

from __future__ import annotations

from sluice.model import Edge, Graph, Placement
from sluice.model.base import Name


def remote_shares(graph: Graph, placement: Placement) -> dict[Name, dict[Name, float]]:
    """Worker -> operator -> remote links / links of its tasks there (CAPSys, equation 8); 0 for a sink.

    Forward edges between equal numbers of tasks pair as many as possible on the same worker; all other edges link
    every task with every task.
    """
    parallelism = placement.parallelism
    outgoing: dict[str, list[Edge]] = {name: [] for name in graph.names}
    for edge in graph.edges:
        if parallelism.get(edge.target):
            outgoing[edge.source].append(edge)
    return {
        worker: {name: _remote_share(found, name, outgoing[name], parallelism) for name, here in found.items() if here}
        for worker, found in placement.tasks.items()
    }


def _remote_share(here: dict[str, int], name: str, edges: list[Edge], parallelism: dict[str, int]) -> float:
    links = remote = 0.0
    for edge in edges:
        local = here.get(edge.target, 0)
        if edge.kind == "forward" and parallelism[edge.target] == parallelism[name]:
            links += 1
            remote += max(here[name] - local, 0) / here[name]
        else:
            links += parallelism[edge.target]
            remote += parallelism[edge.target] - local
    return remote / links if links else 0.0
