"""A journal in words: why every scaling happened, and what it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.journal.file import Entry


@dataclass(frozen=True)
class Explanation:
    """One scaling action: when, what, why, what the guards changed, and what came of it by the next action."""

    time_s: float
    change: str
    reason: str
    notes: tuple[str, ...]
    outcome: str

    def sentence(self) -> str:
        guarded = f" Guards: {'; '.join(self.notes)}." if self.notes else ""
        return f"{clock(self.time_s)} {self.change}. Why: {self.reason}.{guarded} {self.outcome}"


def clock(time_s: float) -> str:
    minutes, seconds = divmod(round(time_s), 60)
    return f"{minutes:3d}:{seconds:02d}"


def explain(entries: Iterable[Entry]) -> Iterator[Explanation]:
    """Every cycle that acted or failed to, in order; of a dry run every wish that a cycle before it did not have."""
    entries = list(entries)
    shared = any(entry["kind"] == "run" and entry.get("engine") == "attach" for entry in entries)
    cycles = [entry for entry in entries if entry["kind"] == "cycle"]
    acted = [number for number, entry in enumerate(cycles) if entry["applied"] or _is_new_wish(cycles, number)]
    for position, number in enumerate(acted):
        entry = cycles[number]
        until = acted[position + 1] if position + 1 < len(acted) else len(cycles) - 1
        yield Explanation(
            time_s=entry["time_s"],
            change=_change(entry["applied"], shared) if entry["applied"] else _would(entry, shared),
            reason=entry["decision"]["reason"],
            notes=tuple(entry["plan"]["notes"]),
            outcome=_outcome(entry["observation"], _last_known(cycles[number : until + 1]), entry["applied"])
            if entry["applied"]
            else "Dry run: nothing was done.",
        )


def held_back(entries: Iterable[Entry]) -> dict[str, int]:
    """How often nothing was done although something was wished or went wrong, by cause."""
    causes: dict[str, int] = {}
    for entry in entries:
        if entry["kind"] != "cycle":
            continue
        if entry["problem"]:
            causes[entry["problem"]] = causes.get(entry["problem"], 0) + 1
        elif entry["cooling"]:
            causes["cool-down"] = causes.get("cool-down", 0) + 1
    return causes


def _is_new_wish(cycles: Sequence[Entry], number: int) -> bool:
    entry = cycles[number]
    if not entry.get("dry_run") or entry["cooling"] or not _wished(entry):
        return False
    return number == 0 or _wished(cycles[number - 1]) != _wished(entry)


def _wished(entry: Entry) -> dict[str, tuple[int, int]]:
    """Operators the plan would change, with what they have and would get."""
    now = entry["observation"]["operators"]
    plan = entry["plan"]["parallelism"].items()
    return {name: (now[name]["parallelism"], count) for name, count in plan if now[name]["parallelism"] != count}


def _would(entry: Entry, shared: bool) -> str:
    return f"would scale {_numbers(_wished(entry), shared)}"


def _numbers(changed: Mapping[str, Sequence[int]], shared: bool) -> str:
    """Operators with their numbers; the queries of an application share its executors, so all have the same."""
    told = {"executors": next(iter(changed.values()))} if shared and changed else changed
    return ", ".join(f"{name} {before} -> {after}" for name, (before, after) in told.items())


def _change(applied: Mapping[str, Any], shared: bool) -> str:
    if applied["error"]:
        return f"failed, nothing changed ({applied['error']})"
    changes = _numbers(applied["changed"], shared)
    if changes and applied["detail"]:
        return f"{changes} ({applied['detail']})"
    return changes or applied["detail"] or "placed anew"


def _outcome(before: Mapping[str, Any], after: Mapping[str, Any], applied: Mapping[str, Any]) -> str:
    if applied["error"]:
        return ""
    stood = f"It stood still for {applied['downtime_s']:.1f} s; " if applied["downtime_s"] else ""
    waited_for_s = after["time_s"] - before["time_s"]
    if waited_for_s <= 0:
        return f"{stood}the journal ends here."
    parts = [
        f"latency {_figure(_latency(before), 's')} -> {_figure(_latency(after), 's')}",
        f"read {_figure(_read(before), '/s')} -> {_figure(_read(after), '/s')}",
        *(f"{name} has {count}" for name, count in _missing(after, applied)),
    ]
    return f"{stood}{waited_for_s:.0f} s later: {', '.join(parts)}."


def _last_known(cycles: Sequence[Entry]) -> Mapping[str, Any]:
    """The last observation after the first that has figures; a batch longer than its window leaves one without."""
    first, *later = (entry["observation"] for entry in cycles)
    known = [seen for seen in later if _latency(seen) is not None and _read(seen) is not None]
    last: Mapping[str, Any] = (known or later or [first])[-1]
    return last


def _missing(after: Mapping[str, Any], applied: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Operators that still have another number of instances than they were given: a cluster may be full, or slow."""
    now = after["operators"]
    given = {name: count for name, (_, count) in applied["changed"].items() if name in now}
    return [(name, now[name]["parallelism"]) for name, count in given.items() if now[name]["parallelism"] != count]


def _latency(observation: Mapping[str, Any]) -> float | None:
    samples = observation["latency_samples_s"]
    return samples[-1] if samples else None


def _read(observation: Mapping[str, Any]) -> float | None:
    rates = [m["input_rate"] for m in observation["operators"].values() if m["arrival_rate"] is not None]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _figure(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:,.1f}{unit}" if unit == "s" else f"{value:,.0f}{unit}"
