"""The decisions of a journal in words, a page of them at a time: only these are read in full."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from sluice.journal.explain import explain
from sluice.journal.records import RECORD as RECORDS
from sluice.journal.records import AnyRecord, Cycle, Intervention, RunHeader
from sluice.journal.results import RunLog, reports_of
from sluice.model.base import first_problem
from sluice.web.columns import short
from sluice.web.state import Decision, JournalState
from sluice.web.text import RECORD, clipped

PAGE = 30
MOST_SENTENCES = 20
LOOKED_AT = 4
"""Cycles before the next decision in which figures are looked for: the last one may have none."""


def decisions_page(state: JournalState, before: int | None = None, *, is_whole: bool = True) -> dict[str, Any]:
    """The newest first. `before` is the id of the oldest one that is known already."""
    until = len(state.decisions) if before is None else _place(state, before)
    places = range(max(0, until - PAGE), until)
    return {
        "total": len(state.decisions) if is_whole else None,
        "has_older": is_whole and places.start > 0,
        "decisions": [_described(state, place) for place in reversed(places)],
        "interventions": [_intervention(state, found) for found in reversed(state.interventions)],
    }


def last_decision(state: JournalState) -> dict[str, Any] | None:
    return _described(state, len(state.decisions) - 1) if state.decisions else None


def decision_detail(state: JournalState, key: int) -> dict[str, Any] | None:
    """One decision with its records, as they were written."""
    place = _place(state, key)
    if place == len(state.decisions) or _id(state, state.decisions[place]) != key:
        return None
    decision = state.decisions[place]
    lines = [state.line_of(decision.row), *(state.read(handle) for handle in decision.outcomes)]
    return {**_described(state, place), "records": [clipped(line.decode("utf-8", "replace"), RECORD) for line in lines]}


def _id(state: JournalState, decision: Decision) -> int:
    """Where its line is: the same however much of the journal was read."""
    return state.handles[decision.row]


def _place(state: JournalState, key: int) -> int:
    return bisect_left(state.decisions, key, key=lambda decision: _id(state, decision))


def _described(state: JournalState, place: int) -> dict[str, Any]:
    decision = state.decisions[place]
    place_of = {"id": _id(state, decision), "at_s": short(state.columns.at("time_s", decision.row))}
    later = state.decisions[place + 1].row if place + 1 < len(state.decisions) else len(state.handles) - 1
    rows = range(max(decision.row + 1, later - LOOKED_AT + 1), later + 1)
    try:
        records = [_record(state.line_of(decision.row)), *_outcomes(state, decision)]
        records += [_record(state.line_of(row)) for row in rows]
        run = RunLog(_header(state), reports_of(records))
        explained = next(iter(explain(run)))
        result = run.reports[0].result
    except (ValidationError, StopIteration, KeyError, ValueError, ArithmeticError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
        return {**place_of, "kind": "unreadable", "change": "a record that cannot be read", "reason": clipped(problem)}
    assert isinstance(records[0], Cycle)
    return {
        **place_of,
        "time_s": explained.time_s,
        "change": clipped(explained.change),
        "reason": clipped(explained.reason),
        "notes": _few(explained.notes),
        "outcome": clipped(explained.outcome),
        "cycle": records[0].cycle,
        "kind": result.kind,
        "direction": _direction(records[0]),
        "events": _few(records[0].events),
    }


def _few(sentences: Sequence[str]) -> list[str]:
    return [clipped(sentence) for sentence in sentences[:MOST_SENTENCES]]


def _header(state: JournalState) -> RunHeader:
    try:
        header = _record(state.read(state.header_handle)) if state.header else None
    except ValidationError:
        return _NOBODY
    return header if isinstance(header, RunHeader) else _NOBODY


def _direction(cycle: Cycle) -> str:
    wanted = (cycle.proposed or cycle.target).parallelism
    there = cycle.observation.parallelism
    more = sum(wanted.values()) - sum(there.get(name, 0) for name in wanted)
    return "up" if more > 0 else "down" if more < 0 else "sideways"


def _outcomes(state: JournalState, decision: Decision) -> list[AnyRecord]:
    return [_record(state.read(handle)) for handle in decision.outcomes]


def _intervention(state: JournalState, found: tuple[int, float]) -> dict[str, Any]:
    handle, began_s = found
    try:
        record = _record(state.read(handle))
    except ValidationError as error:
        return {"at_s": None, "sentence": clipped(first_problem(error)), "failed": True}
    assert isinstance(record, Intervention)
    return {
        "at_s": short(began_s + record.time_s),
        "sentence": clipped(record.sentence()),
        "failed": record.error is not None,
    }


def _record(line: bytes) -> AnyRecord:
    return RECORDS.validate_json(line)


_NOBODY = RunHeader.model_validate(
    {
        "version": "",
        "engine": "unknown",
        "pipeline": {"name": "unknown"},
        "policy": {"name": "unknown"},
        "interval_s": 1,
    }
)
