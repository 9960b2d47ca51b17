"""Time series out of a journal: what every picture of a run is drawn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sluice.control.journal import Entry


@dataclass(frozen=True)
class Rescale:
    """One scaling action and the sentence behind it."""

    time_s: float
    changes: str
    reason: str


@dataclass(frozen=True)
class RunSeries:
    """One value per cycle; latency one per sample."""

    head: Entry
    time_s: list[float]
    arrival_rate: list[float]
    throughput: list[float]
    slots: dict[str, list[int]]
    latency_time_s: list[float]
    latency_s: list[float]
    rescales: list[Rescale]

    @property
    def total_slots(self) -> list[int]:
        return [sum(counts) for counts in zip(*self.slots.values(), strict=True)]


def run_series(entries: Iterable[Entry]) -> RunSeries:
    series = RunSeries({}, [], [], [], {}, [], [], [])
    head: Entry = {}
    for entry in entries:
        if entry["kind"] == "run":
            head = entry
        elif entry["kind"] == "cycle":
            _add_cycle(series, entry)
    return RunSeries(head, *(getattr(series, name) for name in list(RunSeries.__dataclass_fields__)[1:]))


def _add_cycle(series: RunSeries, entry: Entry) -> None:
    observation = entry["observation"]
    operators = observation["operators"]
    sources = [metrics for metrics in operators.values() if metrics["arrival_rate"] is not None]
    series.time_s.append(entry["time_s"])
    series.arrival_rate.append(sum(metrics["arrival_rate"] for metrics in sources))
    series.throughput.append(sum(metrics["input_rate"] or 0.0 for metrics in sources))
    for name, metrics in operators.items():
        series.slots.setdefault(name, []).append(metrics["parallelism"])
    samples = observation["latency_samples_s"]
    step_s = observation["interval_s"] / max(1, len(samples))
    start_s = entry["time_s"] - observation["interval_s"]
    series.latency_time_s.extend(start_s + (number + 1) * step_s for number in range(len(samples)))
    series.latency_s.extend(samples)
    applied = entry["applied"]
    if applied and applied["error"] is None:
        changes = ", ".join(f"{name} {before} to {after}" for name, (before, after) in applied["changed"].items())
        series.rescales.append(Rescale(entry["time_s"], changes, entry["decision"]["reason"]))
