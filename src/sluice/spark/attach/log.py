"""A cycle as one structured log line: `key=value`, what scales, or would, at INFO, the rest at DEBUG."""

from __future__ import annotations

import json
import logging

from sluice.journal.results import CycleReport

log = logging.getLogger("sluice")
QUIET = ("held", "cooldown")


def log_report(report: CycleReport) -> None:
    cycle, result = report.cycle, report.result
    error = result.error or cycle.problem
    facts: dict[str, object] = {
        "event": result.kind,
        "time_s": round(report.outcomes[-1].time_s if report.outcomes else cycle.time_s, 1),
        "executors": max(cycle.observation.parallelism.values()),
        "target": max((cycle.proposed or cycle.target).parallelism.values()),
        "reason": cycle.recommendation.reason,
        "detail": result.detail,
        "error": error,
    }
    level = logging.DEBUG if result.kind in QUIET else logging.INFO
    if error or result.kind == "unfulfilled":
        level = logging.WARNING
    log.log(level, "%s", line(facts))
    for event in cycle.events if len(report.outcomes) < 2 else ():
        log.warning("%s", line({"event": "repaired", "detail": event}))


def line(facts: dict[str, object]) -> str:
    """`key=value` pairs; a text with spaces in JSON's quotes, what is unknown left out."""
    return " ".join(f"{key}={_value(value)}" for key, value in facts.items() if value is not None)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) and any(sign in value for sign in ' "=') else str(value)
