"""`sluice bench`: Run pipelines under workloads and policies, and compare."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.durations import parse_seconds
from sluice.cli.listings import AsJson
from sluice.cli.run import ENGINE_DEFAULTS
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError, unknown_name
from sluice.journal.records import Choice
from sluice.lab.bench.bench import run_bench
from sluice.lab.bench.cell import Result, runs_at_a_time
from sluice.lab.bench.grid import Cell, grid
from sluice.lab.bench.on_spark import score_groups_on_spark
from sluice.lab.bench.statistics import GroupScore, compare, estimate, score_groups
from sluice.lab.report.figures import UNKNOWN, narrow, plain

Names = list[str] | None
QUERIES = ["q1", "q2", "q3", "q5", "q8", "q11"]
WORKLOADS = ["cosine", "random", "increasing", "decreasing", "convergence"]
POLICIES = ["dhalion", "ds2", "hpa-cpu", "hpa-varga", "dragster", "conttune", "flink", "spark-dra", "clairvoyant"]
COMPARED = ("avg_slots", "avg_latency_s", "p95_latency_s", "slo_violation_ratio", "cost_ratio")

On = Annotated[
    str | None,
    typer.Option("--on", metavar="MASTER", help="Run as a Spark job: local[*], spark://host:port. Same numbers."),
]
Processes = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes on this machine; default: one per core on sim, 1 on spark, where only paced slots allow more.",
    ),
]


@app.command("bench")
def bench(
    out: Annotated[Path, typer.Option(help="Folder of the bench; the same folder again resumes it.")],
    pipeline: Annotated[Names, typer.Option(help="Repeatable; default: the six queries of the thesis.")] = None,
    workload: Annotated[Names, typer.Option(help="Repeatable; default: the five patterns of the thesis.")] = None,
    policy: Annotated[
        Names,
        typer.Option(help="Repeatable, e.g. ds2 or ds2:over_provisioning=1.4; 'clairvoyant' is the planner itself."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds: 0, 1, 2, ...")] = 10,
    engine: Annotated[str, typer.Option(help="What runs them: sim or spark.")] = "sim",
    duration: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="TIME",
            help="Length of a run, e.g. 300 or 5m; default: the whole pattern on sim, 300 on spark.",
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            parser=parse_seconds,
            metavar="TIME",
            help="Time between decisions, e.g. 15 or 30s; default: 15 on sim, 10 on spark.",
        ),
    ] = None,
    slo: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Latency objective, e.g. 30 or 30s.")
    ] = 30.0,
    guard: Annotated[Names, typer.Option("--guard", metavar="KEY=VALUE", help="As in 'sluice run'.")] = None,
    sim_set: Annotated[Names, typer.Option("--sim-set", metavar="KEY=VALUE", help="As in 'sluice run'.")] = None,
    spark_set: Annotated[
        Names,
        typer.Option("--spark-set", metavar="KEY=VALUE", help="As in 'sluice run', e.g. topic_bound_records=20000."),
    ] = None,
    baseline: Annotated[str, typer.Option(help="The policy to compare the others with, seed by seed.")] = "ds2",
    on: On = None,
    processes: Processes = None,
    all_series: Annotated[bool, typer.Option("--all-series", help="Keep time lines of every seed.")] = False,
    within: Annotated[
        float | None,
        typer.Option(parser=parse_seconds, metavar="TIME", help="Begin no run after this time; run again to go on."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run pipelines under workloads and policies, and compare.

    Every pipeline runs under every workload and policy with every seed. An interrupted bench goes on where it was: run
    the same command again. The folder then has one file per run and results.parquet; 'sluice report FOLDER' makes a
    page of it.

    Example: sluice bench --pipeline q1 --workload cosine --policy ds2 --policy hpa-cpu --seeds 5 --out runs/small
    """
    if engine not in ENGINE_DEFAULTS:
        raise unknown_name("engine", engine, ENGINE_DEFAULTS)
    if engine == "spark" and on:
        raise BadInputError("--on takes the simulator's runs to a cluster; with --engine spark leave it out")
    if engine != "spark" and spark_set:
        raise BadInputError(f"--spark-set is for --engine spark, got {spark_set[0]!r} with --engine {engine}")
    defaults = ENGINE_DEFAULTS[engine]
    cells = grid(
        [Choice.parse_text(text) for text in pipeline or QUERIES],
        [Choice.parse_text(text) for text in workload or WORKLOADS],
        [Choice.parse_text(text) for text in policy or POLICIES],
        range(seeds),
        engine=engine,
        duration_s=duration if duration is not None else defaults.duration_s,
        interval_s=interval if interval is not None else defaults.interval_s,
        slo_s=slo,
        guards={**defaults.guards, **parse_settings(guard or (), "--guard")},
        simulator=parse_settings(sim_set or (), "--sim-set"),
        spark=parse_settings(spark_set or (), "--spark-set"),
    )
    results = run_with_progress(
        cells, out, on=on, processes=processes, all_series=all_series, within_s=within, quiet=as_json
    )
    rows = [result.row for result in results]
    groups = score_groups_on_spark(results, on) if on else score_groups(rows)
    comparisons = compare(rows, baseline, COMPARED)
    if as_json:
        content = {"groups": [g.to_data() for g in groups], "comparisons": [c.to_data() for c in comparisons]}
        print(json.dumps(content, indent=2))
        return
    _show(groups)
    together = f", {runs_at_a_time(result.side_by_side for result in results)}" if engine == "spark" else ""
    Console().print(
        f"{len(results)} runs in {out}{together}; 'sluice report {out}' makes a page of them", soft_wrap=True
    )


def run_with_progress(
    cells: list[Cell],
    out: Path,
    *,
    on: str | None,
    processes: int | None,
    all_series: bool = False,
    within_s: float | None = None,
    quiet: bool = False,
) -> list[Result]:
    if out.exists() and not out.is_dir():
        raise BadInputError(f"--out must be a folder, got the file {str(out)!r}")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet) as progress:
        task = progress.add_task("runs", total=len(cells))
        return run_bench(
            cells,
            out,
            on=on,
            processes=processes,
            series_for_all=all_series,
            within_s=math.inf if within_s is None else within_s,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )


COLUMNS = {
    "slots": "avg_slots",
    "cost": "cost_ratio",
    "latency s": "avg_latency_s",
    "p95 s": "p95_latency_s",
    "late": "slo_violation_ratio",
    "actions": "rescales",
    "accuracy": "parallelism_accuracy",
}
MOST_TABLES = 6


def _show(groups: list[GroupScore]) -> None:
    """One table per pipeline and workload; of many, only the mean over all of them."""
    cases: dict[tuple[str, str], list[GroupScore]] = {}
    for group in groups:
        cases.setdefault((group.pipeline, group.workload), []).append(group)
    console = Console()
    if len(cases) > MOST_TABLES:
        console.print(_overview(groups, len(cases)))
        return
    for (pipeline, workload), members in cases.items():
        table = narrow_table(
            "policy", *COLUMNS, title=f"{pipeline}, {workload}: mean over seeds and half the 95 % interval"
        )
        for group in members:
            table.add_row(group.policy, *(narrow(group.estimates[metric]) for metric in COLUMNS.values()))
        console.print(table)


def narrow_table(*columns: str, title: str) -> Table:
    """Without frames between columns: figures stay on one line of a terminal."""
    return Table(*columns, title=title, box=None, padding=(0, 1, 0, 0), pad_edge=False)


def _overview(groups: list[GroupScore], cases: int) -> Table:
    table = narrow_table("policy", *COLUMNS, title=f"mean over {cases} pairs of pipeline and workload")
    for policy in dict.fromkeys(group.policy for group in groups):
        own = [group for group in groups if group.policy == policy]
        means = [estimate(group.estimates[metric].mean for group in own).mean for metric in COLUMNS.values()]
        table.add_row(policy, *(UNKNOWN if mean is None else plain(mean) for mean in means))
    return table
