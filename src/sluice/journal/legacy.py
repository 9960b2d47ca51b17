"""Format 1, written before 0.2: dictionaries with `decision`, `plan` and `applied`, read as today's records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from sluice.errors import BadInputError
from sluice.journal.records import AnyRecord, Choice, Cycle, End, OperatorOutcome, Outcome, RecordCount, RunHeader
from sluice.model import Graph, Observation, Recommendation, Target
from sluice.model.base import first_problem

_HEADER = {"kind", "version", "engine", "pipeline", "policy", "workload", "guards", "graph"}
_HEADER |= {"duration_s", "interval_s", "speedup", "seed", "slo_s", "dry_run"}


def upgrade(entry: dict[str, Any], where: str) -> Iterator[AnyRecord]:
    """The records an old entry stands for: a cycle that acted had its outcome in the same line."""
    try:
        match entry.get("kind"):
            case "run":
                yield _header(entry)
            case "cycle":
                yield from _cycle(entry)
            case "end":
                yield End(time_s=entry["time_s"], records=RecordCount(**entry["records"]))
            case kind:
                raise BadInputError(f"{where}: unknown kind {kind!r}; known: run, cycle, end")
    except ValidationError as error:
        raise BadInputError(f"{where}: {first_problem(error)}") from error
    except (KeyError, TypeError) as error:
        raise BadInputError(f"{where}: not a record of format 1 ({type(error).__name__}: {error})") from error


def _header(entry: dict[str, Any]) -> RunHeader:
    return RunHeader(
        version=entry["version"],
        engine=entry.get("engine", "sim"),
        pipeline=_choice(entry.get("pipeline")),
        policy=_choice(entry.get("policy")),
        workload=_choice(entry["workload"]) if entry.get("workload") else None,
        guards=entry.get("guards", {}),
        graph=Graph.model_validate(entry["graph"]) if entry.get("graph") else None,
        duration_s=entry.get("duration_s"),
        interval_s=entry["interval_s"],
        speedup=entry.get("speedup", 1.0),
        seed=entry.get("seed", 0),
        slo_s=entry.get("slo_s"),
        dry_run=entry.get("dry_run", False),
        settings={key: value for key, value in entry.items() if key not in _HEADER},
    )


def _choice(value: Any) -> Choice:
    if isinstance(value, dict):
        return Choice(name=value["name"], settings=value.get("settings") or value.get("set") or {})
    return Choice(name=str(value or "unknown"))


def _cycle(entry: dict[str, Any]) -> Iterator[Cycle | Outcome]:
    applied = entry["applied"]
    planned = _target(entry["plan"])
    now = {name: metrics["parallelism"] for name, metrics in entry["observation"]["operators"].items()}
    in_force = applied is not None and not applied["error"]
    held = planned.parallelism == now
    yield Cycle(
        cycle=entry["cycle"],
        time_s=entry["time_s"],
        observation=Observation.model_validate(entry["observation"]),
        recommendation=Recommendation.model_validate(entry["decision"]),
        problem=entry["problem"],
        notes=tuple(entry["plan"].get("notes", ())),
        action="apply" if applied else "cooldown" if entry["cooling"] else "none" if held else "dry_run",
        target=planned if in_force or held else Target(parallelism=now),
        proposed=None if in_force or held else planned,
        requested=now,
    )
    if applied:
        yield _outcome(entry, now)


def _outcome(entry: dict[str, Any], now: dict[str, int]) -> Outcome:
    applied = entry["applied"]
    planned = entry["plan"]["parallelism"]
    changed = applied["changed"] or {name: (now[name], n) for name, n in planned.items() if now.get(name, n) != n}
    return Outcome(
        cycle=entry["cycle"],
        time_s=entry["time_s"],
        status="failed" if applied["error"] else "done",
        operators={
            name: OperatorOutcome(
                before=before,
                requested=after,
                observed=before if applied["error"] else after,
                error=applied["error"],
            )
            for name, (before, after) in changed.items()
        },
        downtime_s=applied["downtime_s"],
        detail=applied["detail"],
    )


def _target(plan: dict[str, Any]) -> Target:
    sizes = {name: mix for name, mix in plan.get("sizes", {}).items() if sum(mix.values()) == plan["parallelism"][name]}
    return Target.model_validate({"parallelism": plan["parallelism"], "sizes": sizes, "placement": plan["placement"]})
