"""Time series out of a journal: what every picture of a run is drawn from, small enough to keep for many runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sluice.journal.file import Entry
from sluice.model.base import Frozen


class Action(Frozen):
    """One scaling action and the sentence behind it."""

    time_s: float
    changes: str
    reason: str


class Series(Frozen):
    """One value per decision interval; `latency_s` is the largest of the interval's samples, null without one."""

    time_s: tuple[float, ...]
    arrival_rate: tuple[float, ...]
    throughput: tuple[float, ...]
    slots: dict[str, tuple[int, ...]]
    latency_s: tuple[float | None, ...]
    actions: tuple[Action, ...]

    @property
    def total_slots(self) -> tuple[int, ...]:
        return tuple(sum(counts) for counts in zip(*self.slots.values(), strict=True))


def run_series(entries: Iterable[Entry]) -> Series:
    cycles = [entry for entry in entries if entry["kind"] == "cycle"]
    operators = [cycle["observation"]["operators"] for cycle in cycles]
    sources = [[m for m in found.values() if m["arrival_rate"] is not None] for found in operators]
    names = list(operators[0]) if operators else []
    return Series(
        time_s=tuple(cycle["time_s"] for cycle in cycles),
        arrival_rate=tuple(_short(sum(m["arrival_rate"] for m in found)) for found in sources),
        throughput=tuple(_short(sum(m["input_rate"] or 0.0 for m in found)) for found in sources),
        slots={name: tuple(found[name]["parallelism"] for found in operators) for name in names},
        latency_s=tuple(_largest(cycle["observation"]["latency_samples_s"]) for cycle in cycles),
        actions=tuple(_action(cycle) for cycle in cycles if cycle["applied"] and cycle["applied"]["error"] is None),
    )


def _action(cycle: Entry) -> Action:
    changes = ", ".join(f"{name} {old} to {new}" for name, (old, new) in cycle["applied"]["changed"].items())
    notes = "; ".join(note for note in cycle["plan"]["notes"] if note)
    reason = cycle["decision"]["reason"]
    return Action(time_s=cycle["time_s"], changes=changes, reason=f"{reason} [{notes}]" if notes else reason)


def _largest(samples: Sequence[float]) -> float | None:
    return _short(max(samples)) if samples else None


def _short(value: float) -> float:
    """Five significant digits: more than a picture shows."""
    return float(f"{value:.5g}")
