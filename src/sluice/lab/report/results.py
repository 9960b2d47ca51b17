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
from sluice.lab.report.learned import PAGE as LEARNED
from sluice.lab.report.learned import learned_page, read_learned
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
python -m benchmarks.policies_on_spark --side-by-side 4     # in pieces: again until all is there
python -m benchmarks.learning_on_spark --side-by-side 5
sluice results --bench runs/full --bench benchmarks/measured/policies-on-spark.json \\
  --learned benchmarks/measured/learning-on-spark.json --reproduced runs/kanis.json ... --findings docs/findings.md
```

What is not given keeps its page. Without the papers' published curve, traces and profiles those rows say that they are
missing."""
ALL_CASES = "slots against latency, mean over all cases"
PICTURES = "results"
PAPERS = ("kanis", "dragster", "conttune", "qescalor", "capsys")
PAPER_PICTURES = {
    "Verdicts per paper": "verdicts.png",
    "ContTune with and without what we added": "conttune-added.png",
}
COUNTED, HELD_OUT = "each figure counted once.", "held out"
Counts = Mapping[str, Mapping[str, int]]
ENGINES = {"sim": "the simulator", "spark": "Spark"}


def write_results(
    folder: Path,
    benches: Sequence[Path],
    reproduced: Sequence[Path],
    findings: Path | None = None,
    learned: Path | None = None,
) -> list[Path]:
    """`results.md`, two pages to read; beside it in `results/` the pictures and all the tables, one file each.

    What is not given keeps its page, and stands in `results.md` as that page says.
    """
    if not benches and not reproduced and not learned:
        raise BadInputError("there is nothing to write about: give --bench, --reproduced or --learned")
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
    if learned is not None:
        written.append(_document(beside / f"{LEARNED}.md", learned_page(read_learned(learned))))
    counts = {paper: verdicts for paper in PAPERS if (verdicts := _counted(beside / f"{paper}.md"))}
    for name, picture in _paper_pictures(counts, papers).items():
        written.append(save(picture, beside / name))
    parts = ["# Results", *([filled(_text(findings), beside)] if findings else [])]
    for engine in ENGINES:
        parts += _summary(beside / f"bench-{engine}.md", "All cases")
    parts += _summary(beside / f"{LEARNED}.md", "Every level")
    parts += _verdict_summary(counts) if counts else []
    parts += [f"![{alt}]({PICTURES}/{name})" for alt, name in PAPER_PICTURES.items() if (beside / name).exists()]
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


def _summary(page: Path, rest: str) -> list[str]:
    """The beginning of a page, which may be of an earlier day: its date is in it."""
    if not page.exists():
        return []
    title, text = beginning(page.read_text())
    return [f"## {title}", text.replace("](", f"]({PICTURES}/"), f"{rest}: [{page.name}]({PICTURES}/{page.name})."]


def _columns(content: Content) -> dict[str, str]:
    return {
        title: metric
        for title, metric in COLUMNS.items()
        if any(group.estimates[metric].mean is not None for group in content.groups)
    }


def _counted(page: Path) -> Counts:
    """Of a paper's page: what kind of figure -> verdict -> how many."""
    if not page.exists():
        return {}
    said = beginning(page.read_text())[1].partition(COUNTED)[2].strip().rstrip(".").lower()
    found = {}
    for part in filter(None, said.split("; ")):
        kind, _, counts = part.partition(": ")
        numbers = {verdict: int(count) for count, verdict in (one.split(" ", 1) for one in counts.split(", "))}
        found[kind] = {verdict.value: numbers.get(verdict.value, 0) for verdict in Verdict}
    return found


def _verdict_summary(papers: Mapping[str, Counts]) -> list[str]:
    rows = [
        [f"[{paper}]({PICTURES}/{paper}.md), {kind}", *map(str, counts.values())]
        for paper, kinds in papers.items()
        for kind, counts in kinds.items()
    ]
    return ["## Papers run again", VERDICTS, markdown(["", *(verdict.value for verdict in Verdict)], rows)]


def _paper_pictures(papers: Mapping[str, Counts], given: Mapping[str, Sequence[Table]]) -> dict[str, Figure]:
    """File name -> picture; what ContTune's additions are worth only where its tables are given."""
    found = {}
    if papers:
        held_out = {paper: kinds[HELD_OUT] for paper, kinds in papers.items() if HELD_OUT in kinds}
        found[PAPER_PICTURES["Verdicts per paper"]] = verdict_figure(held_out)
    if (added := added_figure(given.get("conttune", ()))) is not None:
        found[PAPER_PICTURES["ContTune with and without what we added"]] = added
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
        f"{content.notes[0].partition(': ')[2].capitalize()}.{_measured_on(machine)}",
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


def _measured_on(machine: Mapping[str, str | int]) -> str:
    if not machine:
        return ""
    return (
        f" Measured on {machine['date']}, {machine['processor']}, {machine['cores']} cores, sluice {machine['sluice']}."
    )


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
    parts = [f"# {paper}: paper beside ours", f"{len(tables)} tables, {COUNTED} {said.capitalize()}."]
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
