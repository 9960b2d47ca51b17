"""The results as a document with pictures, written from what the commands left behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from sluice.control.memory import write_atomically
from sluice.errors import BadInputError
from sluice.experiments.bench.statistics import GroupScore
from sluice.experiments.reproduce import Table, Verdict
from sluice.report.content import Content, Shown, collect
from sluice.report.export import pareto_figure, save, timeline_figure
from sluice.report.figures import figure, with_unit

COLUMNS = {
    "slots": "avg_slots",
    "cost": "cost_ratio",
    "latency (s)": "avg_latency_s",
    "p95 (s)": "p95_latency_s",
    "late": "slo_violation_ratio",
    "actions": "rescales",
    "oscillations": "oscillations",
    "accuracy": "parallelism_accuracy",
}
LEGEND = """Mean over seeds and half the 95 % confidence interval. *cost*: slot-seconds over those of a planner that
knows load and capacities and keeps the latency objective 95 % of the time; below 1 means fewer slots than the
objective needs. *late*: share of time above the objective. *oscillations*: changes that undo the one before although
the load did not turn. *accuracy*: overlap of the slots there were with those the load of the moment needs."""
PICTURES = "results"


def write_results(folder: Path, benches: Sequence[Path], reproduced: Sequence[Path]) -> list[Path]:
    """`results.md`, and its pictures in `results/` beside it."""
    if not benches and not reproduced:
        raise BadInputError("there is nothing to write about: give --bench or --reproduced")
    (folder / PICTURES).mkdir(parents=True, exist_ok=True)
    parts = ["# Results", "Written by `sluice results` from the outputs of `sluice bench` and `sluice reproduce`."]
    pictures: list[Path] = []
    for bench in benches:
        content = collect([bench])
        pictures += _draw(content, folder)
        parts += _bench_part(content)
    for path in reproduced:
        parts += _paper_part(*_read_tables(path))
    document = folder / "results.md"
    write_atomically(document, ("\n\n".join(parts) + "\n").encode())
    return [document, *pictures]


def _bench_part(content: Content) -> list[str]:
    engines = sorted({group.engine for group in content.groups})
    where = "Spark" if "spark" in engines else "the simulator"
    machine = content.environment
    parts = [
        f"## Policies compared on {where}",
        f"{content.notes[0].partition(': ')[2].capitalize()}. Measured on {machine.get('date')}, "
        f"{machine.get('processor')}, {machine.get('cores')} cores, sluice {machine.get('sluice')}.",
    ]
    if content.overall:
        parts += [
            f"![slots against latency, all cases]({PICTURES}/pareto-{engines[0]}.svg)",
            LEGEND,
            _markdown(["policy", *COLUMNS], ([g.policy, *_figures(g)] for g in content.overall)),
        ]
    for pipeline in dict.fromkeys(group.pipeline for group in content.groups):
        groups = [group for group in content.groups if group.pipeline == pipeline]
        parts += [
            f"### {pipeline}",
            f"![slots against latency, {pipeline}]({PICTURES}/pareto-{engines[0]}-{pipeline}.svg)",
            _markdown(["workload", "policy", *COLUMNS], ([g.workload, g.policy, *_figures(g)] for g in groups)),
        ]
    for run in _time_lines(content):
        name = f"timeline-{run.engine}-{run.pipeline}-{run.workload}-{run.policy}"
        parts.append(f"![{run.policy} on {run.pipeline} under {run.workload}]({PICTURES}/{name}.svg)")
    return parts


def _draw(content: Content, folder: Path) -> list[Path]:
    engine = content.groups[0].engine
    written = []
    if content.overall:
        written.append(save(pareto_figure(content.overall), folder / PICTURES / f"pareto-{engine}.svg"))
    for pipeline in dict.fromkeys(group.pipeline for group in content.groups):
        groups = [group for group in content.groups if group.pipeline == pipeline]
        first = [group for group in groups if group.workload == groups[0].workload]
        written.append(save(pareto_figure(first), folder / PICTURES / f"pareto-{engine}-{pipeline}.svg"))
    for run in _time_lines(content):
        name = f"timeline-{run.engine}-{run.pipeline}-{run.workload}-{run.policy}.svg"
        written.append(save(timeline_figure(run), folder / PICTURES / name))
    return written


def _time_lines(content: Content, most: int = 2) -> list[Shown]:
    return [run for run in content.runs if run.policy == content.baseline][:most]


def _paper_part(paper: str, tables: Sequence[Table]) -> list[str]:
    verdicts = Counter(row.verdict for table in tables for row in table.rows)
    claimed = {verdict: count for verdict, count in verdicts.items() if verdict != Verdict.SHOWN}
    said = ", ".join(f"{count} {verdict}" for verdict, count in claimed.items()) or "nothing claimed"
    parts = [f"## {paper}: paper beside ours", f"{len(tables)} tables: {said}."]
    for table in tables:
        rows = [row for row in table.rows if row.verdict != Verdict.SHOWN] or list(table.rows)
        parts += [
            f"### {table.name}: {table.title}",
            _markdown(
                ["", "paper", "ours", "verdict", "note"],
                ([r.what, with_unit(r.paper, r.unit), with_unit(r.ours, r.unit), r.verdict, r.note] for r in rows),
            ),
            *table.notes,
        ]
    return parts


def _read_tables(path: Path) -> tuple[str, list[Table]]:
    try:
        content = json.loads(path.read_text())
        return str(content["paper"]), [Table.parse(table, str(path)) for table in content["tables"]]
    except OSError as error:
        raise BadInputError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{str(path)!r} is not what 'sluice reproduce PAPER --json' prints: {error}") from error


def _figures(group: GroupScore) -> list[str]:
    return [figure(group.estimates[metric]) for metric in COLUMNS.values()]


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |" for line in lines)
