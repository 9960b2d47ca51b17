"""A journal in words: why every scaling happened, and what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluice.journal.results import CycleReport, CycleResult, RunLog
from sluice.model import Observation


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


def explain(run: RunLog) -> Iterator[Explanation]:
    """Every cycle that acted or failed to, in order; of a dry run every new proposal."""
    reports = run.reports
    shown = [number for number in range(len(reports)) if _is_worth_telling(reports, number)]
    for position, number in enumerate(shown):
        report = reports[number]
        until = shown[position + 1] if position + 1 < len(shown) else len(reports) - 1
        result = report.result
        yield Explanation(
            time_s=report.cycle.time_s,
            change=_change(result, shared=run.is_shared),
            reason=report.cycle.recommendation.reason,
            notes=report.cycle.notes,
            outcome="Dry run: nothing was done."
            if result.kind == "would_scale"
            else _outcome(report, _last_known(reports[number : until + 1]), result),
        )


def held_back(run: RunLog) -> dict[str, int]:
    """How often nothing was done although something was recommended or went wrong, by cause."""
    causes: dict[str, int] = {}
    for report in run.reports:
        cause = report.cycle.problem or ("cooldown" if report.result.kind == "cooldown" else None)
        if cause:
            causes[cause] = causes.get(cause, 0) + 1
    return causes


@dataclass(frozen=True)
class ShadowSummary:
    """How another policy's recommendations compare with the target in force, over the cycles it was asked in."""

    policy: str
    cycles: int
    agreed: int
    mean_instances: float
    mean_in_force: float
    problems: int

    def sentence(self) -> str:
        text = f"shadow {self.policy}: agreed with the target in {self.agreed} of {self.cycles} cycles; "
        text += f"recommended {self.mean_instances:.1f} instances on average, {self.mean_in_force:.1f} were in force"
        return f"{text}; {self.problems} problems." if self.problems else f"{text}."


def shadows_of(run: RunLog) -> list[ShadowSummary]:
    """Every shadow of a run; recommendations are those after guards."""
    names = dict.fromkeys(name for cycle in run.cycles for name in cycle.shadows)
    summaries = []
    for name in names:
        asked = [cycle for cycle in run.cycles if name in cycle.shadows]
        counts = [cycle.shadows[name].parallelism for cycle in asked]
        in_force = [cycle.target.parallelism for cycle in asked]
        total = max if run.is_shared else sum
        summaries.append(
            ShadowSummary(
                policy=name,
                cycles=len(asked),
                agreed=sum(a == b for a, b in zip(counts, in_force, strict=True)),
                mean_instances=sum(total(one.values()) for one in counts) / len(asked),
                mean_in_force=sum(total(one.values()) for one in in_force) / len(asked),
                problems=sum(cycle.shadows[name].problem is not None for cycle in asked),
            )
        )
    return summaries


def _is_worth_telling(reports: Sequence[CycleReport], number: int) -> bool:
    result = reports[number].result
    if result.kind != "would_scale":
        return result.is_action or result.kind == "failed"
    before = reports[number - 1].result if number else None
    return before is None or before.kind != "would_scale" or before.changed != result.changed


def _change(result: CycleResult, *, shared: bool) -> str:
    changes = result.changes(shared=shared)
    if result.kind == "failed":
        return f"failed, nothing changed ({result.error})"
    if result.kind == "would_scale":
        return f"would scale {changes}"
    what = changes or "placed anew"
    said = f"{what} ({result.detail})" if result.detail else what
    return f"{said}; failed: {result.error}" if result.errors else said


def _outcome(report: CycleReport, after: Observation, result: CycleResult) -> str:
    if result.kind == "failed":
        return ""
    before = report.cycle.observation
    stood = f"It stood still for {result.downtime_s:.1f} s; " if result.downtime_s else ""
    waited_for_s = after.time_s - before.time_s
    if waited_for_s <= 0:
        return f"{stood}the journal ends here."
    parts = [
        f"latency {_figure(_latency_s(before), 's')} -> {_figure(_latency_s(after), 's')}",
        f"read {_figure(_read_rate(before), '/s')} -> {_figure(_read_rate(after), '/s')}",
        *(f"{name} has {count}" for name, count in _missing(after, result)),
    ]
    return f"{stood}{waited_for_s:.0f} s later: {', '.join(parts)}."


def _last_known(reports: Sequence[CycleReport]) -> Observation:
    """The last observation after the first that has figures; a batch longer than its window leaves one without."""
    first, *later = (report.cycle.observation for report in reports)
    known = [seen for seen in later if _latency_s(seen) is not None and _read_rate(seen) is not None]
    return (known or later or [first])[-1]


def _missing(after: Observation, result: CycleResult) -> list[tuple[str, int]]:
    """Operators that still have another number of instances than requested: a cluster may be full, or slow."""
    requested = {name: count for name, (_, count) in result.changed.items()}
    return [(name, n) for name, n in after.parallelism.items() if n != requested.get(name, n)]


def _latency_s(observation: Observation) -> float | None:
    return observation.latency_samples_s[-1] if observation.latency_samples_s else None


def _read_rate(observation: Observation) -> float | None:
    rates = [metrics.input_rate for metrics in observation.operators.values() if metrics.arrival_rate is not None]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


def _figure(value: float | None, unit: str) -> str:
    return "unknown" if value is None else f"{value:,.1f}{unit}" if unit == "s" else f"{value:,.0f}{unit}"
