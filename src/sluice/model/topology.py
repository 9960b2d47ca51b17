"""The shape of a job: who feeds whom, in an order in which everyone comes after what feeds it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter


@dataclass(frozen=True)
class Topology:
    """Build with `Topology.of`: it validates, and the same shape is computed once."""

    names: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    order: tuple[str, ...]
    predecessors: dict[str, tuple[str, ...]]
    successors: dict[str, tuple[str, ...]]

    @staticmethod
    def of(names: Iterable[str], edges: Iterable[tuple[str, str]]) -> Topology:
        return _topology(tuple(names), tuple(edges))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if not self.predecessors[name])

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if not self.successors[name])

    @cached_property
    def followers(self) -> dict[str, tuple[int, ...]]:
        """Everyone after all who follow it, with the places of those among the keys."""
        names = tuple(reversed(self.order))
        place = {name: number for number, name in enumerate(names)}
        return {name: tuple(place[follower] for follower in self.successors[name]) for name in names}

    def is_source(self, name: str) -> bool:
        return not self.predecessors[name]


@lru_cache(maxsize=256)
def _topology(names: tuple[str, ...], edges: tuple[tuple[str, str], ...]) -> Topology:
    if not names:
        raise ValueError("a job needs at least one operator, got none")
    known = set(names)
    if len(known) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"operator names must differ, got {twice!r} twice")
    predecessors: dict[str, list[str]] = {name: [] for name in names}
    successors: dict[str, list[str]] = {name: [] for name in names}
    for source, target in edges:
        for end in (source, target):
            if end not in known:
                raise ValueError(
                    f"edge {source!r} -> {target!r} names {end!r}, which is no operator; operators: " + ", ".join(names)
                )
        if target in successors[source]:
            raise ValueError(f"edge {source!r} -> {target!r} is there twice")
        successors[source].append(target)
        predecessors[target].append(source)
    try:
        order = tuple(TopologicalSorter(predecessors).static_order())
    except CycleError as error:
        raise ValueError("the edges form a cycle: " + " -> ".join(reversed(error.args[1]))) from None
    return Topology(
        names=names,
        edges=edges,
        order=order,
        predecessors={name: tuple(found) for name, found in predecessors.items()},
        successors={name: tuple(found) for name, found in successors.items()},
    )
