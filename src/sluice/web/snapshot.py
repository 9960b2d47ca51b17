"""What a page shows of a journal, as JSON data.

Names are values here, never keys: a page that looked one up in an object could be fooled by `__proto__`.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from sluice.web.columns import short
from sluice.web.glance import CycleGlance, Metrics
from sluice.web.state import MOST_OPERATORS, JournalState
from sluice.web.text import NAME, clipped
from sluice.web.verdict import past_verdict, verdict

MOST_WORKERS = 500
LARGEST = 1e15
"""Of numbers that are taken from parts whose types nobody checks."""


def snapshot(
    state: JournalState, price: float | None = None, *, is_whole: bool = True, is_over: bool = False
) -> dict[str, Any]:
    """All but time lines and decisions, which have calls of their own; without costs while more is to be read."""
    latest = _latest(state)
    said = past_verdict(state) if is_over and state.last is not None else verdict(state)
    return {
        "version": state.version,
        "cycles": len(state.columns) if is_whole or state.last is None else state.last.cycle + 1,
        "head": _head(state),
        "verdict": {"word": said.word, "good": said.good, "sentence": said.sentence},
        "time_s": short(state.columns.last("time_s")[-1]) if len(state.columns) else None,
        "operators": _operators(state.last) if state.last else [],
        "edges": _edges(state),
        "placement": _placement(latest),
        "curves": _curves(state, latest),
        "forecast": _forecast(latest),
        "shadow": _shadow(latest),
        "costs": _costs(state, price) if is_whole else None,
        "recommendation": _text(_at(latest, "recommendation", "reason")),
        "problem": _text(latest.get("problem")),
        "problems": state.problems,
        "ended": state.end is not None,
        "error": _text(state.end.error) if state.end else None,
        "bad_lines": {"count": state.bad_lines, "first": state.bad},
    }


def _latest(state: JournalState) -> dict[str, Any]:
    """The newest cycle, whole: parts that only some versions write are taken from it with care."""
    return _decoded(state.line_of(len(state.handles) - 1)) if len(state.handles) else {}


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _head(state: JournalState) -> dict[str, Any]:
    header = state.header
    if header is None:
        return {"engine": "unknown", "pipeline": "unknown", "policy": "unknown", "slo_s": None, "shared": False}
    return {
        "engine": clipped(header.engine, NAME),
        "pipeline": clipped(header.pipeline.label, NAME),
        "policy": clipped(header.policy.label, NAME),
        "workload": clipped(header.workload.label, NAME) if header.workload else None,
        "slo_s": header.slo_s,
        "interval_s": header.interval_s,
        "duration_s": header.duration_s,
        "dry_run": header.dry_run,
        "shared": header.is_shared,
    }


def _operators(last: CycleGlance) -> list[dict[str, Any]]:
    shown = list(last.observation.operators.items())[:MOST_OPERATORS]
    return [_operator(name, metrics, last) for name, metrics in shown]


def _operator(name: str, metrics: Metrics, last: CycleGlance) -> dict[str, Any]:
    return {
        "name": clipped(name, NAME),
        "instances": metrics.parallelism,
        "target": last.target.parallelism.get(name),
        "busy": short(metrics.busy),
        "backpressure": short(metrics.backpressure),
        "lag": short(metrics.lag),
        "lag_rate": short(metrics.lag_rate),
        "input_rate": short(metrics.input_rate),
        "output_rate": short(metrics.output_rate),
        "capacity": short(metrics.capacity),
        "arrival_rate": short(metrics.arrival_rate),
    }


def _edges(state: JournalState) -> list[dict[str, Any]]:
    if state.last is None:
        return []
    seen = state.last.observation
    ends = [tuple(edge) for edge in seen.edges]
    if not ends and state.header and state.header.graph:
        ends = [(edge.source, edge.target) for edge in state.header.graph.edges]
    return [
        {
            "from": clipped(source, NAME),
            "to": clipped(target, NAME),
            "rate": short(_edge_rate(seen.operators[source], target)),
        }
        for source, target in ends[: 4 * MOST_OPERATORS]
        if source in seen.operators and target in seen.operators
    ]


def _edge_rate(metrics: Metrics, target: str) -> float | None:
    if metrics.output_rates and target in metrics.output_rates:
        return metrics.output_rates[target]
    return metrics.output_rate


def _placement(latest: dict[str, Any]) -> dict[str, Any] | None:
    """Planned, and actual where the engine says who runs where."""
    planned = _tasks(_at(latest, "target", "placement"))
    actual = _ran(latest)
    if planned is None and actual is None:
        return None
    workers = sorted({*(planned or {}), *(actual or {})}, key=_numbered)[:MOST_WORKERS]
    return {
        "knows_actual": actual is not None,
        "knows_planned": planned is not None,
        "workers": [
            {
                "name": clipped(worker, NAME),
                "planned": _listed((planned or {}).get(worker, {})),
                "actual": _listed((actual or {}).get(worker, {})),
            }
            for worker in workers
        ],
    }


def _numbered(name: str) -> list[tuple[int, str]]:
    """For an order in which `w2` comes before `w10`."""
    parts = re.split(r"([0-9]{1,15})", name[:200])
    return [(int(part), "") if number % 2 else (-1, part) for number, part in enumerate(parts)]


def _ran(latest: dict[str, Any]) -> dict[str, dict[str, int]] | None:
    """Instances by worker: every batch of a window has one task per instance, so tasks are divided by the batches."""
    workers = _at(latest, "observation", "workers")
    seen = (
        _tasks({"tasks": {name: _at(one, "source_tasks") for name, one in workers.items()}})
        if isinstance(workers, dict)
        else None
    )
    target = _at(latest, "target", "parallelism")
    if not seen or not isinstance(target, dict):
        return None
    total: dict[str, int] = {}
    for tasks in seen.values():
        for operator, count in tasks.items():
            total[operator] = total.get(operator, 0) + count
    return {
        worker: {
            operator: round(count * target[operator] / total[operator])
            for operator, count in tasks.items()
            if isinstance(target.get(operator), int) and abs(target[operator]) < LARGEST
        }
        for worker, tasks in seen.items()
    }


def _tasks(placement: Any) -> dict[str, dict[str, int]] | None:
    tasks = placement.get("tasks") if isinstance(placement, dict) else None
    if not isinstance(tasks, dict):
        return None
    return {
        worker: {name: count for name, count in found.items() if isinstance(count, int) and 0 < count < LARGEST}
        for worker, found in tasks.items()
        if isinstance(found, dict)
    }


def _listed(counts: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {"operator": clipped(name, NAME), "tasks": count} for name, count in sorted(counts.items())[:MOST_OPERATORS]
    ]


def _curves(state: JournalState, latest: dict[str, Any]) -> list[dict[str, Any]]:
    learned = _at(latest, "recommendation", "learned", "curves")
    if not learned and state.learned_handle >= 0:
        learned = _at(_decoded(state.read(state.learned_handle)), "recommendation", "learned", "curves")
    learned = learned if isinstance(learned, dict) else {}
    names = [*state.last.observation.operators] if state.last else []
    curves = []
    for name in names[:MOST_OPERATORS]:
        samples = [
            [parallelism, short(rate)]
            for parallelism, rates in sorted(state.samples.get(name, {}).items())
            for rate in rates
        ]
        model = _band(learned.get(name), "parallelism")
        if samples or model:
            curves.append({"operator": clipped(name, NAME), "samples": samples, "model": model})
    return curves


def _forecast(latest: dict[str, Any]) -> dict[str, Any] | None:
    return _band(_at(latest, "recommendation", "learned", "forecast"), "time_s")


def _band(data: Any, axis: str) -> dict[str, Any] | None:
    """Four lists of numbers of one length, or nothing at all."""
    if not isinstance(data, dict):
        return None
    parts = {key: data.get(key) for key in (axis, "mean", "low", "high")}
    lists = [part for part in parts.values() if isinstance(part, list)]
    if len(lists) < 4 or len({len(part) for part in lists}) != 1:
        return None
    numbers = all(isinstance(value, int | float) and abs(value) < LARGEST for part in lists for value in part)
    return parts if numbers else None


def _shadow(latest: dict[str, Any]) -> list[dict[str, Any]]:
    """What other policies would do now."""
    found = latest.get("shadows")
    if not isinstance(found, dict):
        return []
    target = _at(latest, "target", "parallelism")
    now = target if isinstance(target, dict) else {}
    return [_opinion(name, advice, now) for name, advice in list(found.items())[:50] if isinstance(advice, dict)]


def _opinion(name: str, advice: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    wanted = advice.get("parallelism")
    wanted = wanted if isinstance(wanted, dict) else {}
    changes = [
        {"operator": clipped(operator, NAME), "now": now.get(operator), "would": count}
        for operator, count in wanted.items()
        if isinstance(count, int) and abs(count) < LARGEST and count != now.get(operator)
    ]
    return {"policy": clipped(name, NAME), "changes": changes[:MOST_OPERATORS], "reason": _text(advice.get("reason"))}


def _costs(state: JournalState, price: float | None) -> dict[str, Any]:
    """Slot-hours so far, and at a fixed maximum: that of the settings, else the most there were."""
    header = state.header
    guards = header.guards if header else {}
    settings = header.settings if header else {}
    limit = next(
        (
            value
            for value in (settings.get("max_executors"), guards.get("max_slots"))
            if isinstance(value, int) and 0 < value < LARGEST
        ),
        None,
    )
    most = limit or state.most_slots
    hours = state.duration_s / 3600
    return {
        "unit": "executor-hours" if header and header.is_shared else "slot-hours",
        "duration_s": short(state.duration_s),
        "used": short(state.slot_s / 3600),
        "at_maximum": short(most * hours),
        "maximum": most,
        "maximum_is": "a setting" if limit else "the most there were",
        "late": state.late,
        "known": state.known,
        "price": price,
    }


def _at(data: Any, *path: str) -> Any:
    for key in path:
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def _text(value: Any) -> str | None:
    return clipped(value) if isinstance(value, str) else None
