"""Which node serves which operator, and how much of its input each of them reads. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from sluice.model import InstanceMix, NodeType
from sluice.spark.nodes.provider import WorkerNode

LEAST_SHARE = 0.05
"""Of what an average slot of the operator reads: less would never show that a slot has become faster."""


@dataclass(frozen=True)
class Assignment:
    """Node -> operators; `kept` are nodes beyond the mix that work on until those to come are there."""

    nodes: dict[str, tuple[str, ...]]
    kept: dict[str, tuple[str, ...]]
    missing: dict[str, InstanceMix]
    """Operator -> instances that have no node yet."""
    shared: bool = False

    @property
    def serving(self) -> dict[str, tuple[str, ...]]:
        return {**self.nodes, **self.kept}

    @property
    def missing_nodes(self) -> dict[str, int]:
        """Nodes of every type that are to come; operators that share them wait for the same ones."""
        return nodes_needed(self.missing, shared=self.shared)

    def of(self, operator: str) -> list[str]:
        return sorted(name for name, served in self.serving.items() if operator in served)


Before = Mapping[str, tuple[str, ...]]
"""Node -> operators it has served."""


def assign_shared(mixes: Mapping[str, InstanceMix], ready: Mapping[str, WorkerNode], before: Before) -> Assignment:
    """Every operator on as many nodes of each type as its mix says, the same ones for all; those that serve first."""
    chosen: dict[str, tuple[str, ...]] = {}
    missing: dict[str, InstanceMix] = {}
    for operator, mix in mixes.items():
        for size, count in mix.items():
            offered = sorted(
                (name for name in ready if ready[name].type == size), key=lambda one: (one not in before, one)
            )
            for name in offered[:count]:
                chosen[name] = (*chosen.get(name, ()), operator)
            if len(offered) < count:
                missing.setdefault(operator, {})[size] = count - len(offered)
    kept = {}
    if missing:
        kept = {name: before[name] for name in ready if name in before and name not in chosen}
    return Assignment(chosen, kept, missing, shared=True)


def assign(mixes: Mapping[str, InstanceMix], ready: Mapping[str, WorkerNode], before: Before) -> Assignment:
    """Every operator its mix, each instance a node to itself; nodes stay where they are if they can.

    A node that its operator does not need any more goes to another one that lacks its type. Where something is missing
    the operator keeps what it had until then: replacing a node never leaves less than there was.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    left = {operator: dict(mix) for operator, mix in mixes.items()}
    for name in sorted(ready):
        for operator in before.get(name, ())[:1]:
            if left.get(operator, {}).get(ready[name].type, 0) > 0:
                left[operator][ready[name].type] -= 1
                chosen[name] = (operator,)
    # nodes without work first: one that serves somebody holds state
    for name in sorted((name for name in ready if name not in chosen), key=lambda one: (one in before, one)):
        lacking = [operator for operator in left if left[operator].get(ready[name].type, 0) > 0]
        if lacking:
            left[lacking[0]][ready[name].type] -= 1
            chosen[name] = (lacking[0],)
    missing = {
        operator: {size: count for size, count in mix.items() if count}
        for operator, mix in left.items()
        if any(mix.values())
    }
    kept = {
        name: tuple(served for served in before[name] if served in missing)
        for name in ready
        if name not in chosen and set(before.get(name, ())) & missing.keys()
    }
    return Assignment(chosen, kept, missing)


def mix_of(nodes: list[str], ready: Mapping[str, WorkerNode]) -> InstanceMix:
    """How many of which type."""
    found: InstanceMix = {}
    for name in nodes:
        found[ready[name].type] = found.get(ready[name].type, 0) + 1
    return found


def nodes_needed(mixes: Mapping[str, InstanceMix], *, shared: bool) -> dict[str, int]:
    """Nodes of every type for all operators together."""
    total: dict[str, int] = {}
    for mix in mixes.values():
        for size, count in mix.items():
            total[size] = max(total.get(size, 0), count) if shared else total.get(size, 0) + count
    return total


def slot_worths(
    slots: Mapping[str, int], types: Mapping[str, NodeType], speeds: Mapping[str, float]
) -> dict[str, float]:
    """What one slot of each worker is worth, the mean of all slots being 1.

    `speeds` are records/s of a slot while it works, as far as they were measured; a worker that was not is worth what
    its cores make it beside the others.
    """
    cores = {name: types[name].cpu_cores / max(1, types[name].slots) for name in slots}
    scale = median([speeds[name] / cores[name] for name in slots if speeds.get(name, 0.0) > 0] or [1.0])
    raw = {name: speeds[name] if speeds.get(name, 0.0) > 0 else cores[name] * scale for name in slots}
    total = sum(slots.values())
    mean = sum(raw[name] * slots[name] for name in slots) / total if total else 1.0
    return {name: max(LEAST_SHARE, worth / mean) for name, worth in raw.items()}


def bounded_slots(slots: Mapping[str, int], least: int, most: int | None) -> dict[str, int]:
    """Tasks on every worker: all its slots, unless the operator may not have so many, or must have more."""
    tasks = dict(slots)
    while most is not None and sum(tasks.values()) > max(most, len(tasks)):
        fullest = max(sorted(tasks), key=lambda name: tasks[name])
        if tasks[fullest] == 1:
            break
        tasks[fullest] -= 1
    while tasks and sum(tasks.values()) < least:
        tasks[min(sorted(tasks), key=lambda name: tasks[name])] += 1
    return tasks
