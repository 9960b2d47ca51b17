"""The results as a document with pictures, written from what the commands left behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import BadInputError
from sluice.files import replace_file
from sluice.lab.bench.statistics import GroupScore
from sluice.lab.report.content import Content, Shown, collect, overall
from sluice.lab.report.export import file_name, pareto_figure, save, timeline_figure
from sluice.lab.report.figures import figure, markdown, with_unit
from sluice.lab.report.findings import beginning, filled
from sluice.lab.report.paper_pictures import added_figure, verdict_figure
from sluice.lab.reproduce import Row, Table, Verdict, count_verdicts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
HOW_TO_READ = "Mean over seeds and half the 95 % confidence interval."
LEGEND = {
    "cost": "*cost*: slot-seconds over those of a planner that knows load and capacities and keeps the latency "
    "objective 95 % of the time; below 1 means fewer slots than the objective needs.",
    "late": "*late*: share of time above the objective.",
    "oscillations": "*oscillations*: changes that undo the one before although the load did not turn.",
    "accuracy": "*accuracy*: overlap of the slots there were with those the load of the moment needs.",
}
VERDICTS = (
    "Each figure of a paper once. *matches*: within the stated tolerance. *order holds*: every pair the paper prints "
    "apart, or a tie by our intervals. *claim holds*: a yes or no. *fitted* figures calibrated what they are compared "
    "with. A cause of a difference is named only where an ablation shows it. The tolerance is 25 % unless a table's "
    "notes say otherwise."
)
AGAIN = """## Run it again

```
sluice bench --out runs/full
sluice reproduce kanis --json > runs/kanis.json
sluice reproduce dragster --json > runs/dragster.json
sluice reproduce conttune --set second_curve=CURVE.json --set traces=FOLDER --json > runs/conttune.json
sluice reproduce qescalor --json > runs/qescalor.json
sluice reproduce capsys --set profiles=FOLDER --json > runs/capsys.json
sluice results --bench runs/full --reproduced runs/kanis.json ... --findings docs/findings.md
```

Without the papers' published curve, traces and profiles those rows say that they are missing."""
ALL_CASES = "slots against latency, mean over all cases"
PICTURES = "results"
ENGINES = {"sim": "the simulator", "spark": "Spark"}


def write_results(
    folder: Path, benches: Sequence[Path], reproduced: Sequence[Path], findings: Path | None = None
) -> list[Path]:
    """`results.md`, two pages to read; beside it in `results/` the pictures and all the tables, one file each."""
    if not benches and not reproduced:
        raise BadInputError("there is nothing to write about: give --bench or --reproduced")
    contents = [collect([bench]) for bench in benches]
    engines = [content.groups[0].engine for content in contents]
    if twice := [engine for engine, count in Counter(engines).items() if count > 1]:
        raise BadInputError(f"--bench takes one bench per engine, got {engines.count(twice[0])} of {twice[0]!r}")
    beside = folder / PICTURES
    beside.mkdir(parents=True, exist_ok=True)
    written = []
    for content in contents:
        drawn = _pictures(content)
        written += [save(picture, beside / name) for name, picture in drawn.values()]
        links = {alt: f"![{alt}]({name})" for alt, (name, _) in drawn.items()}
        written.append(_document(beside / f"bench-{content.groups[0].engine}.md", _bench_part(content, links)))
    papers = dict(_read_tables(path) for path in reproduced)
    for paper, tables in papers.items():
        written.append(_document(beside / f"{paper}.md", _paper_part(paper, tables)))
    drawn_papers = _paper_pictures(papers)
    written += [save(picture, beside / name) for name, picture in drawn_papers.values()]
    parts = ["# Results", *([filled(_text(findings), beside)] if findings else [])]
    for engine, where in ENGINES.items():
        parts += _bench_summary(beside / f"bench-{engine}.md", where)
    parts += _verdict_summary(papers) if papers else []
    parts += [f"![{alt}]({PICTURES}/{name})" for alt, (name, _) in drawn_papers.items()]
    parts.append(AGAIN)
    return [_document(folder / "results.md", parts), *written]


def _document(path: Path, parts: Sequence[str]) -> Path:
    replace_file(path, ("\n\n".join(parts) + "\n").encode(), durable=True)
    return path


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"cannot read findings {str(path)!r}: {error}") from error


def _bench_summary(page: Path, where: str) -> list[str]:
    """The beginning of the bench's page, which may be of an earlier day: its date is in it."""
    if not page.exists():
        return []
    text = beginning(page.read_text()).replace("](", f"]({PICTURES}/")
    return [f"## Policies compared on {where}", text, f"All cases: [{page.name}]({PICTURES}/{page.name})."]


def _columns(content: Content) -> dict[str, str]:
    return {
        title: metric
        for title, metric in COLUMNS.items()
        if any(group.estimates[metric].mean is not None for group in content.groups)
    }


def _verdict_summary(papers: Mapping[str, Sequence[Table]]) -> list[str]:
    rows = []
    for paper, tables in papers.items():
        for kind, counts in count_verdicts(tables).items():
            if any(counts.values()):
                label = f"[{paper}]({PICTURES}/{paper}.md), {kind.replace('_', ' ')}"
                rows.append([label, *map(str, counts.values())])
    return ["## Papers run again", VERDICTS, markdown(["", *(verdict.value for verdict in Verdict)], rows)]


def _paper_pictures(papers: Mapping[str, Sequence[Table]]) -> dict[str, tuple[str, Figure]]:
    """What each picture shows -> its file's name, and the picture."""
    found = {}
    if papers:
        found["Verdicts per paper"] = ("verdicts.png", verdict_figure(papers))
    if (added := added_figure(papers.get("conttune", ()))) is not None:
        found["ContTune with and without what we added"] = ("conttune-added.png", added)
    return found


def _pictures(content: Content) -> dict[str, tuple[str, Figure]]:
    """What each picture shows -> its file's name, and the picture."""
    engine = content.groups[0].engine
    found = {}
    if content.overall:
        found[ALL_CASES] = (f"pareto-{engine}.png", pareto_figure(content.overall))
    for pipeline in _pipelines(content):
        groups = overall([row for row in content.rows if row["pipeline"] == pipeline])
        groups = groups or [group for group in content.groups if group.pipeline == pipeline]
        name = file_name("pareto", engine, pipeline)
        found[_all_workloads(pipeline)] = (f"{name}.png", pareto_figure(groups))
    for run in _time_lines(content):
        name = file_name("timeline", run.engine, run.pipeline, run.workload, run.policy)
        found[f"{run.policy} on {run.pipeline} under {run.workload}"] = (f"{name}.png", timeline_figure(run))
    return found


def _bench_part(content: Content, pictures: Mapping[str, str]) -> list[str]:
    where = ENGINES[content.groups[0].engine]
    machine = content.environment
    columns = _columns(content)
    parts = [
        f"# Policies compared on {where}",
        f"{content.notes[0].partition(': ')[2].capitalize()}. Measured on {machine.get('date')}, "
        f"{machine.get('processor')}, {machine.get('cores')} cores, sluice {machine.get('sluice')}.",
        " ".join([HOW_TO_READ, *(text for title, text in LEGEND.items() if title in columns)]),
    ]
    if content.overall:
        parts += [
            pictures[ALL_CASES],
            markdown(["policy", *columns], ([g.policy, *_figures(g, columns)] for g in content.overall)),
        ]
    for pipeline in _pipelines(content):
        groups = [group for group in content.groups if group.pipeline == pipeline]
        rows = ([g.workload, g.policy, *_figures(g, columns)] for g in groups)
        parts += [
            f"## {pipeline}",
            pictures[_all_workloads(pipeline)],
            markdown(["workload", "policy", *columns], rows),
        ]
    timelines = [picture for alt, picture in pictures.items() if "timeline" in picture]
    return parts + (["## Single runs", *timelines] if timelines else [])


def _pipelines(content: Content) -> list[str]:
    return list(dict.fromkeys(group.pipeline for group in content.groups))


def _all_workloads(pipeline: str) -> str:
    return f"slots against latency, {pipeline}, mean over its workloads"


def _time_lines(content: Content, most: int = 2) -> list[Shown]:
    return [run for run in content.runs if run.policy == content.baseline][:most]


def _paper_part(paper: str, tables: Sequence[Table]) -> list[str]:
    """Every row: figures with a verdict and those without."""
    counts = count_verdicts(tables)
    said = "; ".join(
        f"{kind.replace('_', ' ')}: {', '.join(f'{count} {verdict}' for verdict, count in found.items() if count)}"
        for kind, found in counts.items()
        if any(found.values())
    )
    parts = [f"# {paper}: paper beside ours", f"{len(tables)} tables, each figure counted once. {said.capitalize()}."]
    for table in tables:
        parts += [
            f"## {table.name}: {table.title}",
            markdown(["", "paper", "ours", "verdict", "note"], (_row(row) for row in table.rows)),
            *table.notes,
        ]
    return parts


def _row(row: Row) -> list[str]:
    verdict = f"{row.verdict} (fitted)" if row.fitted else str(row.verdict)
    note = "; ".join(part for part in (row.note, f"same figure as in {row.same_as}" if row.same_as else "") if part)
    return [row.what, with_unit(row.paper, row.unit), with_unit(row.ours, row.unit), verdict, note]


def _read_tables(path: Path) -> tuple[str, list[Table]]:
    try:
        content = json.loads(path.read_text())
        return str(content["paper"]), [Table.parse(table, str(path)) for table in content["tables"]]
    except OSError as error:
        raise BadInputError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(f"{str(path)!r} is not what 'sluice reproduce PAPER --json' prints: {error}") from error


def _figures(group: GroupScore, columns: Mapping[str, str]) -> list[str]:
    return [figure(group.estimates[metric]) for metric in columns.values()]
