"""The placement in force: a plan file per operator, kept while executors change.

The loop decides which placement is wanted. Between its decisions workers die, come back and join: every second the
wanted placement is fitted to the workers there are. Every batch reads the plan of its operator when it begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice.files import replace_file
from sluice.model import Placement
from sluice.spark.placed.assignment import fitted, moved, source_workers, state_workers
from sluice.spark.placed.stores import ASSUMED, stores_of
from sluice.spark.placed.workers import Workers


@dataclass(frozen=True)
class PlacedQuery:
    """What placing needs to know of an operator's query."""

    name: str
    plan: Path
    checkpoint: Path
    stateful: bool


@dataclass
class Held:
    """Where one operator's partitions were last planned to be."""

    state: list[str] = field(default_factory=list)
    """Worker of every state partition."""
    divided_for: tuple[dict[str, int], list[str]] | None = None
    """Instances of every worker, and the workers of heavy ones, that the state was divided for."""
    plan: dict[str, Any] = field(default_factory=dict)
    """As its file has it."""


@dataclass(frozen=True)
class Moves:
    """What a change of placement made move."""

    state_partitions: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.state_partitions.values())


class Placing:
    """Called by the loop's thread only."""

    def __init__(self, queries: Mapping[str, PlacedQuery]) -> None:
        self._queries = queries
        self._held = {name: Held() for name in queries}
        self._weights: dict[str, list[float]] = {}
        self.worths: Mapping[str, Mapping[str, float]] = {}
        """Operator -> worker -> what one task there is worth beside one elsewhere; 1 where nothing is said."""
        self.wanted: Placement | None = None
        self.in_force: Placement | None = None

    def apply(
        self,
        wanted: Placement,
        parallelism: Mapping[str, int],
        state_partitions: Mapping[str, int],
        workers: Workers,
    ) -> Moves:
        """Plan what the next batch of every operator is to read; the same again costs nothing."""
        self.wanted = wanted
        self.in_force = fitted(wanted, parallelism, {name: one.cores for name, one in workers.items()})
        moves = {}
        for name in self._queries:
            count = self._place(name, self.in_force.of(name), state_partitions[name], workers)
            if count:
                moves[name] = count
        return Moves(moves)

    def task_weights(self, name: str) -> list[float] | None:
        """How an operator's input is divided among its source partitions; null: evenly."""
        worths = self.worths.get(name)
        if not worths or self.in_force is None:
            return None
        return [worths.get(worker, 1.0) for worker in source_workers(self.in_force.of(name))]

    def weigh(self, state_s: Mapping[str, Mapping[int, float]], cpu_s: Mapping[str, float]) -> None:
        """The CPU time that state partitions took in a window, as a share of the operator's whole: keys may be skewed.

        Half old, half new.
        """
        for name, taken_s in state_s.items():
            total_s = cpu_s[name]
            if name not in self._held or total_s <= 0:
                continue
            now = [taken_s.get(partition, 0.0) / total_s for partition in range(len(self._held[name].state))]
            old = self._weights.get(name, now)
            self._weights[name] = [(a + b) / 2 for a, b in zip(old, now, strict=True)] if len(old) == len(now) else now

    @property
    def state_shares(self) -> dict[str, tuple[float, ...]]:
        """Operator -> share of its CPU time that each state partition takes, where its partitions were seen at work."""
        return {
            name: tuple(round(share, 4) for share in shares)
            for name, shares in self._weights.items()
            if len(shares) == len(self._held[name].state)
        }

    def restore(self, state: Mapping[str, list[str]], wanted: Placement | None) -> None:
        """The state partitions as an earlier run held them, so that going on moves none."""
        self.wanted = wanted
        for name, workers in state.items():
            held = self._held[name]
            held.state = list(workers)
            if wanted is not None and wanted.of(name).keys() == set(workers):
                # no worker was gone then: what they held was divided for this placement, by weights not known any more
                held.divided_for = (wanted.of(name), _heavy(wanted, name))

    @property
    def state(self) -> dict[str, list[str]]:
        """Operator -> worker of every state partition."""
        return {name: list(held.state) for name, held in self._held.items() if held.state}

    def _place(self, name: str, counts: Mapping[str, int], partitions: int, workers: Workers) -> int:
        query, held = self._queries[name], self._held[name]
        plan: dict[str, Any] = {
            "places": [workers[worker].place for worker in source_workers(counts)],
            "workers": [worker.place for worker in workers.values()],
        }
        before = held.state
        if query.stateful:
            heavy = _heavy(self.in_force, name) if self.in_force else []
            if (counts, heavy) != held.divided_for or len(before) != partitions:
                # weights change all the time: they count when instances move anyway
                weights, worths = self._weights.get(name, []), self.worths.get(name, {})
                heavy_now = heavy if len(weights) == partitions > len(heavy) else []
                worth = {
                    worker: (count - heavy_now.count(worker)) * worths.get(worker, 1.0)
                    for worker, count in counts.items()
                }
                held.state = state_workers(worth, partitions, before, weights, heavy_now)
                held.divided_for = (dict(counts), heavy)
            plan["state"] = {
                "folder": str(query.checkpoint / "state"),
                "stores": stores_of(query.checkpoint) or ASSUMED,
                "places": [workers[worker].place for worker in held.state],
            }
        if plan != held.plan:
            replace_file(query.plan, json.dumps(plan).encode())
            held.plan = plan
        return moved(before, held.state)


def _heavy(placement: Placement, name: str) -> list[str]:
    """Workers of heavy instances, heaviest first; none where no instance is left for all other partitions."""
    found = [worker for worker, _ in placement.heavy_of(name)]
    return found if len(found) < placement.parallelism.get(name, 0) else []
