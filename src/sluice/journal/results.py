"""The result of a cycle: the one place that determines it, for everything that reads or watches a journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sluice.errors import BadInputError
from sluice.journal.records import AnyRecord, Cycle, End, Outcome, RunHeader

Kind = Literal["held", "cooldown", "would_scale", "scaled", "waiting", "partly", "failed", "unfulfilled"]
KINDS: tuple[Kind, ...] = (
    "held",
    "cooldown",
    "would_scale",
    "scaled",
    "waiting",
    "partly",
    "failed",
    "unfulfilled",
)


@dataclass(frozen=True)
class CycleResult:
    """The result of one cycle.

    `changed` maps operators to their instances before and after: of an action what was requested, of a dry run what
    would have been. `errors` has the operators whose change failed.
    """

    kind: Kind
    changed: dict[str, tuple[int, int]]
    errors: dict[str, str]
    missing: dict[str, int]
    """Operators with another number of instances than requested, and that number."""
    downtime_s: float = 0.0
    detail: str | None = None

    @property
    def is_action(self) -> bool:
        """Something was asked of the engine and not refused altogether."""
        return self.kind in ("scaled", "waiting", "partly", "unfulfilled")

    @property
    def error(self) -> str | None:
        return "; ".join(f"{name}: {text}" for name, text in self.errors.items()) or None

    def changes(self, *, shared: bool = False, arrow: str = "->") -> str:
        """`parse 2 -> 4, count 1 -> 3`; operators that share their instances have one number."""
        shown = {"executors": next(iter(self.changed.values()))} if shared and self.changed else self.changed
        return ", ".join(f"{name} {before} {arrow} {after}" for name, (before, after) in shown.items())


@dataclass(frozen=True)
class CycleReport:
    """A cycle with all outcomes known so far, oldest first."""

    cycle: Cycle
    outcomes: tuple[Outcome, ...] = ()

    @property
    def result(self) -> CycleResult:
        return result_of(self.cycle, self.outcomes)

    def with_outcome(self, outcome: Outcome) -> CycleReport:
        return CycleReport(self.cycle, (*self.outcomes, outcome))


def result_of(cycle: Cycle, outcomes: Sequence[Outcome] = ()) -> CycleResult:
    """The last outcome decides; the change itself, its downtime and its details are in the first."""
    if cycle.action != "apply":
        return _not_applied(cycle)
    if not outcomes:
        # the run ended, or crashed, between the decision and its effect
        return CycleResult("waiting", {}, {}, {})
    first, last = outcomes[0], outcomes[-1]
    errors = {name: part.error for name, part in last.operators.items() if part.error}
    changed = {name: (part.before, part.requested) for name, part in first.operators.items() if not part.error}
    missing = {
        name: part.observed
        for name, part in last.operators.items()
        if not part.error and part.observed != part.requested
    }
    kind: Kind = "scaled" if last.status == "done" else last.status
    return CycleResult(kind, changed, errors, missing, first.downtime_s, last.detail or first.detail)


def _not_applied(cycle: Cycle) -> CycleResult:
    if cycle.action == "none" or cycle.proposed is None:
        return CycleResult("held", {}, {}, {})
    now = cycle.target.parallelism
    would = {name: (now[name], count) for name, count in cycle.proposed.parallelism.items() if now[name] != count}
    return CycleResult("cooldown" if cycle.action == "cooldown" else "would_scale", would, {}, {})


@dataclass(frozen=True)
class RunLog:
    """One run of a journal, from its header to its end (null if it was cut off)."""

    header: RunHeader
    reports: tuple[CycleReport, ...]
    end: End | None = None

    @property
    def cycles(self) -> tuple[Cycle, ...]:
        return tuple(report.cycle for report in self.reports)

    @property
    def is_shared(self) -> bool:
        """Whether all operators run on the same instances, as the queries of an application do."""
        return self.header.engine == "attach" or bool(self.header.graph and self.header.graph.shared)

    @property
    def problems(self) -> tuple[str, ...]:
        """The distinct things that went wrong and were survived."""
        return tuple(sorted({cycle.problem for cycle in self.cycles if cycle.problem}))


def reports_of(records: Iterable[AnyRecord]) -> tuple[CycleReport, ...]:
    """The cycles of one run, each with its outcomes."""
    reports: dict[int, CycleReport] = {}
    for record in records:
        if isinstance(record, Cycle):
            reports[record.cycle] = CycleReport(record)
        elif isinstance(record, Outcome) and record.cycle in reports:
            reports[record.cycle] = reports[record.cycle].with_outcome(record)
    return tuple(reports.values())


def runs_of(records: Iterable[AnyRecord], where: str = "the journal") -> list[RunLog]:
    """Every run of a journal, in order."""
    parts: list[tuple[RunHeader, list[AnyRecord]]] = []
    for record in records:
        if isinstance(record, RunHeader):
            parts.append((record, []))
        elif not parts:
            raise BadInputError(f"{where} does not begin with what runs (a record of kind 'run')")
        else:
            parts[-1][1].append(record)
    if not parts:
        raise BadInputError(f"{where} is empty")
    return [RunLog(header, reports_of(part), _end(part)) for header, part in parts]


def _end(records: Sequence[AnyRecord]) -> End | None:
    return next((record for record in reversed(records) if isinstance(record, End)), None)
