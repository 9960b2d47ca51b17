"""What a report shows, collected from folders that `sluice run` or `sluice bench` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any

from pydantic import Field

from sluice.errors import BadInputError
from sluice.journal.file import JOURNAL_FILE, journal_path, read_runs
from sluice.journal.savings import savings_of
from sluice.lab.bench.cell import runs_at_a_time
from sluice.lab.bench.grid import Cell
from sluice.lab.bench.statistics import METRICS, Comparison, GroupScore, Row, compare, estimate, score_groups
from sluice.lab.bench.store import BenchStore
from sluice.lab.environment import environment
from sluice.lab.report.placed import planned_and_actual
from sluice.lab.scores import score
from sluice.lab.series import Series, joined_series
from sluice.lab.summary import summarise
from sluice.model.base import Frozen

ALL = "all"
ROWS = ".json"
DEFAULT_SLO_S = 30.0
"""By which runs without an objective of their own are compared with others."""
COMPARED = ("avg_slots", "avg_latency_s", "p95_latency_s", "slo_violation_ratio", "cost_ratio")


class Shown(Frozen):
    """One run that can be drawn."""

    engine: str
    pipeline: str
    workload: str
    policy: str
    seed: int
    slo_s: float | None
    """Null without an objective."""
    series: Series


class Content(Frozen):
    """Everything on the page. `notes` says per folder what ran there, `savings` what its attachments saved."""

    title: str
    notes: tuple[str, ...]
    environment: dict[str, str | int]
    rows: tuple[dict[str, Any], ...]
    groups: tuple[GroupScore, ...]
    overall: tuple[GroupScore, ...]
    baseline: str | None
    comparisons: tuple[Comparison, ...]
    runs: tuple[Shown, ...]
    savings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    placements: dict[str, str] = Field(default_factory=dict)
    """Per folder the picture of where tasks were planned and where they ran."""


def collect(folders: Sequence[Path], baseline: str | None = None, price: float | None = None) -> Content:
    """One folder, or several to compare: then every policy carries the name of its folder.

    A file of rows, as benchmarks keep them, stands for the folder of a bench.
    """
    rows: list[dict[str, Any]] = []
    runs: list[Shown] = []
    notes: list[str] = []
    savings: dict[str, dict[str, Any]] = {}
    placements: dict[str, str] = {}
    measured_on: dict[str, str | int] = {}
    labels = _labels(folders)
    for folder, label in zip(folders, labels, strict=True):
        if folder.suffix == ROWS:
            found = _rows(folder)
        else:
            found = _bench(folder) if (folder / "grid.json").exists() else _single(folder, price)
        prefix = f"{label}: " if len(folders) > 1 else ""
        notes.append(f"{label}: {found.note}")
        rows += [{**row, "policy": prefix + row["policy"]} for row in found.rows]
        runs += [run.model_copy(update={"policy": prefix + run.policy}) for run in found.runs]
        savings |= {label: found.savings} if found.savings else {}
        placements |= {label: found.placement} if found.placement else {}
        measured_on = measured_on or found.environment
    names = list(dict.fromkeys(row["policy"] for row in rows))
    chosen = baseline or next((name for name in names if name.rpartition(": ")[2] == "ds2"), names[0])
    if chosen not in names:
        raise BadInputError(f"unknown baseline {chosen!r}; policies in this report: {', '.join(names)}")
    return Content(
        title=", ".join(labels),
        notes=tuple(notes),
        environment=measured_on,
        rows=tuple(rows),
        groups=tuple(score_groups(rows)),
        overall=tuple(overall(rows)),
        baseline=chosen,
        comparisons=tuple(compare(rows, chosen, COMPARED)) if len(names) > 1 else (),
        runs=tuple(runs),
        savings=savings,
        placements=placements,
    )


def overall(rows: Iterable[Row]) -> list[GroupScore]:
    """Every policy over the cases that all of them ran: the mean of the cases seed by seed, then over seeds.

    A seed of which a run is missing is left out: its mean would be one of other cases.
    """
    found: dict[str, dict[int, dict[tuple[str, str, str], Row]]] = {}
    for row in rows:
        case = (row["engine"], row["pipeline"], row["workload"])
        found.setdefault(row["policy"], {}).setdefault(row["seed"], {})[case] = row
    shared = set.intersection(*({case for seed in seeds.values() for case in seed} for seeds in found.values()))
    if len(shared) < 2:
        return []
    finished = ({seed for seed, cases in seeds.items() if shared <= cases.keys()} for seeds in found.values())
    whole = sorted(set.intersection(*finished))
    scores = []
    for policy, seeds in found.items():
        estimates = {
            metric: estimate(
                estimate(row[metric] for case, row in seeds[seed].items() if case in shared).mean for seed in whole
            )
            for metric in METRICS
        }
        scores.append(GroupScore(engine=ALL, pipeline=ALL, workload=ALL, policy=policy, estimates=estimates))
    return scores


class _Found(Frozen):
    note: str
    environment: dict[str, str | int]
    rows: tuple[dict[str, Any], ...]
    runs: tuple[Shown, ...]
    savings: dict[str, Any] | None = None
    placement: str | None = None


def _bench(folder: Path) -> _Found:
    store = BenchStore(folder)
    cells = store.cells()
    results = store.results()
    if not results:
        raise BadInputError(f"the bench in {str(folder)!r} has no finished run yet")
    on_spark = [result.side_by_side for result in results if result.cell.engine == "spark"]
    together = f", {runs_at_a_time(on_spark)}" if on_spark else ""
    described = f"{_sizes(cell.labels for cell in cells)}{_lasting(cells)}{together}"
    return _Found(
        note=f"bench of {described}; {len(results)} of {len(cells)} runs finished",
        environment=store.environment(),
        rows=tuple(result.row for result in results),
        runs=tuple(
            Shown(
                engine=result.cell.engine,
                pipeline=result.cell.pipeline.label,
                workload=result.cell.workload.label,
                policy=result.cell.policy.label,
                seed=result.cell.seed,
                slo_s=result.cell.slo_s,
                series=result.series,
            )
            for result in results
            if result.series
        ),
    )


def _rows(path: Path) -> _Found:
    """Rows by name, in which benchmarks keep runs that they measure in pieces; of a run made twice the later one."""
    try:
        kept = json.loads(path.read_text()).values()
        by_case = {(row["pipeline"], row["workload"], row["policy"], row["seed"]): row for row in kept}
        rows = [{**dict.fromkeys(METRICS), **row} for row in by_case.values()]
        described = _sizes(by_case)
        together = runs_at_a_time(row.get("side_by_side") for row in rows)
        busy = [row["machine_busy"] for row in rows if row.get("machine_busy") is not None]
        measured = [row["environment"] for row in rows if row.get("environment")]
    except OSError as error:
        raise BadInputError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInputError(f"{str(path)!r} is not what benchmarks keep, runs by name: {error}") from error
    if not rows:
        raise BadInputError(f"{str(path)!r} has no finished run yet")
    load = f", the machine {min(busy):.0%} to {max(busy):.0%} busy" if busy else ""
    return _Found(
        note=f"bench of {described}, {together}{load}; {len(rows)} runs finished",
        environment=measured[-1] if measured else {},
        rows=tuple(rows),
        runs=(),
    )


def _sizes(cases: Iterable[tuple[str, str, str, int]]) -> str:
    """How many of everything: pipelines, workloads, policies, seeds."""
    names = (("pipeline", "pipelines"), ("workload", "workloads"), ("policy", "policies"), ("seed", "seeds"))
    found = [set(values) for values in zip(*cases, strict=True)]
    return " x ".join(_counted(one, many, values) for (one, many), values in zip(names, found, strict=False))


def _counted(one: str, many: str, found: Set[Any]) -> str:
    return f"{len(found)} {one if len(found) == 1 else many}"


def _lasting(cells: Sequence[Cell]) -> str:
    """A sentence where the runs are not as long as their load's pattern."""
    seconds = sorted({cell.duration_s for cell in cells if cell.duration_s is not None})
    return f", {' or '.join(f'{s:g}' for s in seconds)} s each" if seconds else ""


def _single(where: Path, price: float | None) -> _Found:
    """A run's folder or its journal. Figures are those of the last run in it, the picture shows all of them."""
    if not journal_path(where).exists():
        raise BadInputError(f"{str(where)!r} holds neither a run ({JOURNAL_FILE}) nor a bench (grid.json)")
    runs = read_runs(where)
    last = runs[-1]
    header = last.header
    if not last.reports:
        raise BadInputError(f"the last run in {str(where)!r} has no cycle yet")
    names = {
        "pipeline": header.pipeline.label,
        "workload": header.workload.label if header.workload else "its own load",
        "policy": header.policy.label,
    }
    slo_s = header.slo_s or DEFAULT_SLO_S
    scores = score(last.reports).to_data()
    del scores["stages"]
    summary = summarise(last.reports, last.end, slo_s, shared=last.is_shared)
    row = {
        **dict.fromkeys(METRICS),
        "engine": header.engine,
        **names,
        "seed": header.seed,
        **summary.to_data(),
        **scores,
    }
    hours = sum(run.reports[-1].cycle.time_s for run in runs if run.reports) / 3600
    saved = savings_of(runs, price)
    priced = "" if summary.price is None else f", its instances cost {summary.price:.4g}"
    resumed = f", resumed {len(runs) - 1} times" if len(runs) > 1 else ""
    return _Found(
        note=f"{names['policy']} on {names['pipeline']} under {names['workload']}, engine {header.engine}, "
        f"{hours:.2g} h{resumed}{priced}",
        environment={**environment(), "sluice": header.version},
        rows=(row,),
        runs=(Shown(engine=header.engine, **names, seed=header.seed, slo_s=header.slo_s, series=joined_series(runs)),),
        savings=saved.to_data() if saved else None,
        placement=planned_and_actual(last.reports),
    )


def _labels(folders: Sequence[Path]) -> list[str]:
    """The folders' own names, with parents where two are called the same."""
    if not folders:
        raise BadInputError("a report needs at least one folder")
    resolved = [folder.resolve() for folder in folders]
    names = [folder.name for folder in resolved]
    return [
        name if names.count(name) == 1 else f"{folder.parent.name}/{name}"
        for folder, name in zip(resolved, names, strict=True)
    ]


def to_json(content: Content) -> str:
    """For a script element: no text in it can end that element."""
    data = content.to_data()
    del data["rows"], data["placements"]
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
