"""What an attachment saved: executor-hours against a fixed maximum and minimum, lateness, the decisions that mattered.

A window counts with the executors that were there at its end; of a dry run with those that would have been. What a
fixed number of executors would have done to latency nobody knows, so lateness is the attachment's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sluice.journal.explain import clock
from sluice.journal.results import CycleReport, RunLog
from sluice.model import Observation

MOST_DECISIONS = 3


@dataclass(frozen=True)
class DecisionEffect:
    """One action, until the next one: executor-time it cost (below 0: saved), and batches late before and after it."""

    time_s: float
    before: int
    after: int
    lasted_s: float
    late_before: tuple[int, int]
    """(late, known) batches since the action before."""
    late_after: tuple[int, int]
    reason: str

    @property
    def executor_s(self) -> float:
        return (self.after - self.before) * self.lasted_s

    @property
    def late_change(self) -> float:
        """Share of batches that were late, after less before."""
        return _ratio(self.late_after) - _ratio(self.late_before)

    def sentence(self) -> str:
        more = "more" if self.executor_s > 0 else "fewer"
        text = f"{clock(self.time_s).strip()} executors {self.before} -> {self.after} for {_lasting(self.lasted_s)}"
        text += f": {_amount(abs(self.executor_s))} {more}"
        if self.late_before[1] and self.late_after[1]:
            before, after = (f"{late} of {known}" for late, known in (self.late_before, self.late_after))
            text += f", batches late {before} before and {after} after"
        return f"{text}. Why: {self.reason}."


@dataclass(frozen=True, kw_only=True)
class Savings:
    """Of one journal; hours are executor-hours."""

    dry_run: bool
    duration_s: float
    used_h: float
    at_maximum_h: float
    at_minimum_h: float
    most_used: int
    slo_s: float | None
    batches: int
    """Those of which the latency is known; 0 without an objective."""
    late_batches: int | None
    """Null without an objective."""
    decisions: tuple[DecisionEffect, ...]
    price: float | None = None
    """Of an executor-hour."""

    @property
    def saved_ratio(self) -> float:
        return 1 - self.used_h / self.at_maximum_h if self.at_maximum_h else 0.0

    def sentences(self) -> list[str]:
        verb = "would have used" if self.dry_run else "used"
        text = f"In {_lasting(self.duration_s)} the job {verb} {_figure(self.used_h)} executor-hours"
        text += f"{self._money(self.used_h)}; fixed at the maximum {_figure(self.at_maximum_h)}"
        text += f"{self._money(self.at_maximum_h)}, at the minimum {_figure(self.at_minimum_h)}"
        text += self._money(self.at_minimum_h)
        saved = self.at_maximum_h - self.used_h
        text += f". That is {self.saved_ratio:.0%} below the maximum{self._money(saved)}."
        late = "No latency objective was set: nothing is counted as late."
        if self.late_batches is not None:
            late = f"Late by the objective of {self.slo_s:g} s: {self.late_batches} of {self.batches} batches."
        return [text, late, *(one.sentence() for one in self.decisions)]

    def to_data(self) -> dict[str, Any]:
        data = asdict(self)
        data["decisions"] = [
            {**asdict(one), "executor_s": one.executor_s, "sentence": one.sentence()} for one in self.decisions
        ]
        data["saved_ratio"] = self.saved_ratio
        if self.price is not None:
            hours = {"used": self.used_h, "at_maximum": self.at_maximum_h, "at_minimum": self.at_minimum_h}
            data["cost"] = {name: count * self.price for name, count in hours.items()}
        return {**data, "sentences": self.sentences()}

    def _money(self, hours: float) -> str:
        return "" if self.price is None else f" ({_figure(hours * self.price)})"


def savings_of(runs: Sequence[RunLog], price: float | None = None) -> Savings | None:
    """Of all attachments in a journal together; null if there is none with a cycle."""
    attached = [run for run in runs if run.header.engine == "attach" and run.reports]
    if not attached:
        return None
    at_maximum_s = at_minimum_s = used_s = duration_s = 0.0
    late: list[tuple[int, int]] = []
    decisions: list[DecisionEffect] = []
    for run in attached:
        lasted_s = sum(_window_s(report) for report in run.reports)
        most, least = _bounds(run)
        duration_s += lasted_s
        used_s += sum(_window_s(report) * _executors(run, report) for report in run.reports)
        at_maximum_s += lasted_s * most
        at_minimum_s += lasted_s * least
        late.append(_late(run.reports, run.header.slo_s))
        decisions += _decisions(run)
    slos = [run.header.slo_s for run in attached if run.header.slo_s is not None]
    return Savings(
        dry_run=all(run.header.dry_run for run in attached),
        duration_s=duration_s,
        used_h=used_s / 3600,
        at_maximum_h=at_maximum_s / 3600,
        at_minimum_h=at_minimum_s / 3600,
        most_used=max(_executors(run, report) for run in attached for report in run.reports),
        slo_s=slos[-1] if slos else None,
        batches=sum(known for _, known in late),
        late_batches=sum(count for count, _ in late) if slos else None,
        decisions=_that_mattered(decisions),
        price=price,
    )


def _bounds(run: RunLog) -> tuple[int, int]:
    """Most and fewest executors; of a journal that does not say, the most and fewest there were."""
    seen = [_executors(run, report) for report in run.reports]
    settings = run.header.settings
    return int(settings.get("max_executors", max(seen))), int(settings.get("min_executors", min(seen)))


def _executors(run: RunLog, report: CycleReport) -> int:
    cycle = report.cycle
    if run.header.dry_run:
        return max((cycle.proposed or cycle.target).parallelism.values())
    return max(cycle.observation.parallelism.values())


def _window_s(report: CycleReport) -> float:
    return report.cycle.observation.interval_s


def _late(reports: Sequence[CycleReport], slo_s: float | None) -> tuple[int, int]:
    """(late, known) batches, none without an objective; one longer than a window counts when it has ended."""
    if slo_s is None:
        return 0, 0
    seen = [report.cycle.observation for report in reports]
    known = [latency_s for one in seen if _has_batch(one) for latency_s in one.latency_samples_s]
    return sum(1 for latency_s in known if latency_s > slo_s), len(known)


def _has_batch(observation: Observation) -> bool:
    return any(metrics.batch_s is not None for metrics in observation.operators.values())


def _decisions(run: RunLog) -> list[DecisionEffect]:
    """Of a dry run none: nothing came of them."""
    acted = [number for number, report in enumerate(run.reports) if report.result.is_action and report.result.changed]
    found = []
    for position, number in enumerate(acted):
        report = run.reports[number]
        since = acted[position - 1] + 1 if position else 0
        until = acted[position + 1] + 1 if position + 1 < len(acted) else len(run.reports)
        before, after = next(iter(report.result.changed.values()))
        found.append(
            DecisionEffect(
                time_s=report.cycle.time_s,
                before=before,
                after=after,
                lasted_s=sum(_window_s(later) for later in run.reports[number + 1 : until]),
                late_before=_late(run.reports[since : number + 1], run.header.slo_s),
                late_after=_late(run.reports[number + 1 : until], run.header.slo_s),
                reason=report.cycle.recommendation.reason,
            )
        )
    return found


def _that_mattered(decisions: Sequence[DecisionEffect]) -> tuple[DecisionEffect, ...]:
    """Those with the largest part of all executor-time that was moved, or of all lateness that changed; in order."""
    moved_s = sum(abs(one.executor_s) for one in decisions) or 1.0
    changed = sum(abs(one.late_change) for one in decisions) or 1.0

    def part(one: DecisionEffect) -> float:
        return max(abs(one.executor_s) / moved_s, abs(one.late_change) / changed)

    chosen = sorted(decisions, key=part, reverse=True)[:MOST_DECISIONS]
    return tuple(one for one in decisions if one in chosen)


def _ratio(late: tuple[int, int]) -> float:
    return late[0] / late[1] if late[1] else 0.0


def _figure(value: float) -> str:
    """Hundredths tell nothing of a run of minutes."""
    return f"{value:,.2f}" if abs(value) >= 1 or not value else f"{value:.3g}"


def _amount(executor_s: float) -> str:
    return f"{executor_s / 3600:.2f} executor-hours" if executor_s >= 360 else f"{executor_s:.0f} executor-seconds"


def _lasting(duration_s: float) -> str:
    if duration_s < 120:
        return f"{duration_s:.0f} s"
    return f"{duration_s / 60:.0f} min" if duration_s < 7200 else f"{duration_s / 3600:.1f} h"
