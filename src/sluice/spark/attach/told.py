"""A cycle as one structured log line: `key=value`, what scales, or would, at INFO, the rest at DEBUG."""

from __future__ import annotations

import json
import logging

from sluice.journal.file import Entry

log = logging.getLogger("sluice")


def outcome_of(entry: Entry) -> str:
    """What became of a cycle: scaled, failed, would_scale (a dry run) or held."""
    applied = entry["applied"]
    if applied:
        return "failed" if applied["error"] else "scaled"
    now = {name: metrics["parallelism"] for name, metrics in entry["observation"]["operators"].items()}
    would = entry["dry_run"] and not entry["cooling"] and now != entry["plan"]["parallelism"]
    return "would_scale" if would else "held"


def log_cycle(entry: Entry) -> None:
    applied, outcome = entry["applied"], outcome_of(entry)
    error = (applied["error"] if applied else None) or entry["problem"]
    facts = {
        "event": outcome,
        "time_s": round(entry["time_s"], 1),
        "executors": max(metrics["parallelism"] for metrics in entry["observation"]["operators"].values()),
        "wanted": max(entry["plan"]["parallelism"].values()),
        "reason": entry["decision"]["reason"],
        "detail": applied["detail"] if applied else None,
        "error": error,
    }
    level = logging.WARNING if error else logging.DEBUG if outcome == "held" else logging.INFO
    log.log(level, "%s", line(facts))


def line(facts: dict[str, object]) -> str:
    """`key=value` pairs; a text with spaces in JSON's quotes, what is unknown left out."""
    return " ".join(f"{key}={_value(value)}" for key, value in facts.items() if value is not None)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) and any(sign in value for sign in ' "=') else str(value)
