"""Time series out of a journal: what every picture of a run is drawn from, small enough to keep for many runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sluice.journal.results import CycleReport, RunLog
from sluice.model import Observation
from sluice.model.base import Frozen

EXECUTORS = "executors"
"""What operators that share their instances are drawn as."""


class ActionMark(Frozen):
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
    actions: tuple[ActionMark, ...]

    @property
    def total_slots(self) -> tuple[int, ...]:
        return tuple(sum(counts) for counts in zip(*self.slots.values(), strict=True))


def joined_series(runs: Sequence[RunLog]) -> Series:
    """All runs of a journal, one after the other: a resumed run begins where the one before it ended."""
    reports: list[tuple[float, CycleReport]] = []
    began_s = 0.0
    for run in runs:
        reports += [(began_s, report) for report in run.reports]
        began_s += run.reports[-1].cycle.time_s if run.reports else 0.0
    return _series(reports, shared=any(run.is_shared for run in runs))


def run_series(reports: Iterable[CycleReport], *, shared: bool = False) -> Series:
    return _series([(0.0, report) for report in reports], shared=shared)


def _series(reports: Sequence[tuple[float, CycleReport]], *, shared: bool) -> Series:
    observations = [report.cycle.observation for _, report in reports]
    return Series(
        time_s=tuple(began_s + report.cycle.time_s for began_s, report in reports),
        arrival_rate=tuple(_short(_arriving(seen)) for seen in observations),
        throughput=tuple(_short(_read(seen)) for seen in observations),
        slots=_slots(observations, shared=shared),
        latency_s=tuple(_largest(seen.latency_samples_s) for seen in observations),
        actions=tuple(_mark(began_s, report, shared=shared) for began_s, report in reports if report.result.is_action),
    )


def _slots(observations: Sequence[Observation], *, shared: bool) -> dict[str, tuple[int, ...]]:
    """Operators come and go: one that is not there has no slots."""
    if shared:
        return {EXECUTORS: tuple(max(seen.parallelism.values()) for seen in observations)}
    names = dict.fromkeys(name for seen in observations for name in seen.operators)
    counts = [seen.parallelism for seen in observations]
    return {name: tuple(found.get(name, 0) for found in counts) for name in names}


def _arriving(seen: Observation) -> float:
    return sum(metrics.arrival_rate for metrics in seen.operators.values() if metrics.arrival_rate is not None)


def _read(seen: Observation) -> float:
    return sum(m.input_rate or 0.0 for m in seen.operators.values() if m.arrival_rate is not None)


def _mark(began_s: float, report: CycleReport, *, shared: bool) -> ActionMark:
    cycle = report.cycle
    notes = "; ".join(cycle.notes)
    reason = cycle.recommendation.reason
    return ActionMark(
        time_s=began_s + cycle.time_s,
        changes=report.result.changes(shared=shared, arrow="to"),
        reason=f"{reason} [{notes}]" if notes else reason,
    )


def _largest(samples: Sequence[float]) -> float | None:
    return _short(max(samples)) if samples else None


def _short(value: float) -> float:
    """Five significant digits: more than a picture shows."""
    return float(f"{value:.5g}")
