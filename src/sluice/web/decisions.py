"""The decisions of a journal in words, a page of them at a time: only these are read in full."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from sluice.journal.explain import explain
from sluice.journal.records import RECORD, AnyRecord, Cycle, Intervention, RunHeader
from sluice.journal.results import RunLog, reports_of
from sluice.model.base import first_problem
from sluice.web.state import Decision, JournalState

PAGE = 30
LOOKED_AT = 4
"""Cycles before the next decision in which figures are looked for: the last one may have none."""


def decisions_page(state: JournalState, before: int | None = None) -> dict[str, Any]:
    """The newest first; `before` is the place of the oldest one that is known already."""
    until = len(state.decisions) if before is None else max(0, min(before, len(state.decisions)))
    places = range(max(0, until - PAGE), until)
    return {
        "total": len(state.decisions),
        "from": places.start,
        "decisions": [_told(state, place) for place in reversed(places)],
        "interventions": [_intervention(state, handle) for handle in reversed(state.interventions)],
    }


def decision_detail(state: JournalState, place: int) -> dict[str, Any] | None:
    """One decision with its records, as they were written."""
    if not 0 <= place < len(state.decisions):
        return None
    decision = state.decisions[place]
    lines = [state.line_of(decision.row), *(state.read(handle) for handle in decision.outcomes)]
    return {**_told(state, place), "records": [line.decode("utf-8", "replace") for line in lines]}


def _told(state: JournalState, place: int) -> dict[str, Any]:
    decision = state.decisions[place]
    later = state.decisions[place + 1].row if place + 1 < len(state.decisions) else len(state.handles) - 1
    rows = range(max(decision.row + 1, later - LOOKED_AT + 1), later + 1)
    try:
        header = _record(state.read(state.header_handle))
        records = [_record(state.line_of(decision.row)), *_outcomes(state, decision)]
        records += [_record(state.line_of(row)) for row in rows]
        run = RunLog(header if isinstance(header, RunHeader) else _NOBODY, reports_of(records))
        told = next(iter(explain(run)))
        result = run.reports[0].result
    except (ValidationError, StopIteration, KeyError, ValueError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        return {"place": place, "kind": "unreadable", "change": "a record that cannot be read", "reason": problem}
    assert isinstance(records[0], Cycle)
    facts = asdict(told)
    return {"place": place, "cycle": records[0].cycle, "kind": result.kind, **facts, "events": records[0].events}


def _outcomes(state: JournalState, decision: Decision) -> list[AnyRecord]:
    return [_record(state.read(handle)) for handle in decision.outcomes]


def _intervention(state: JournalState, handle: int) -> dict[str, Any]:
    try:
        record = _record(state.read(handle))
    except ValidationError as error:
        return {"time_s": None, "sentence": first_problem(error)}
    assert isinstance(record, Intervention)
    return {"time_s": record.time_s, "sentence": record.sentence(), "failed": record.error is not None}


def _record(line: bytes) -> AnyRecord:
    return RECORD.validate_json(line)


_NOBODY = RunHeader.model_validate(
    {
        "version": "",
        "engine": "unknown",
        "pipeline": {"name": "unknown"},
        "policy": {"name": "unknown"},
        "interval_s": 1,
    }
)
