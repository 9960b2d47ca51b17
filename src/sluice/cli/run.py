"""`sluice run`: one pipeline under one policy and one workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.settings import parse_settings
from sluice.control.guards import Guards
from sluice.control.journal import Entry, FileJournal, Journal, MemoryJournal, read_journal
from sluice.control.memory import MemoryStore, write_atomically
from sluice.errors import BadInputError
from sluice.experiments.run import RunSpec, run, simulated_engine
from sluice.experiments.summary import Summary, summarise
from sluice.pipelines import pipelines
from sluice.policies import policies
from sluice.registry import build
from sluice.workloads import workloads

THESIS_GUARDS = {"max_slots": 80, "max_step": 15, "cooldown_s": 300.0}
Settings = list[str] | None


@app.command("run")
def run_command(
    pipeline: Annotated[str, typer.Argument(help="A built-in pipeline; see 'sluice pipelines'.")],
    engine: Annotated[str, typer.Option(help="What runs it: sim.")] = "sim",
    policy: Annotated[str, typer.Option(help="Who decides; see 'sluice policies'.")] = "ds2",
    workload: Annotated[str, typer.Option(help="How records arrive; see 'sluice workloads'.")] = "cosine",
    duration: Annotated[
        float | None, typer.Option(help="Length in seconds of engine time; default: the whole pattern.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between decisions.")] = 15.0,
    speedup: Annotated[float, typer.Option(help="How much faster the workload's own time runs.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Same seed, same run.")] = 0,
    slo: Annotated[float, typer.Option(help="Latency objective in seconds.")] = 30.0,
    settings: Annotated[Settings, typer.Option("--set", metavar="KEY=VALUE", help="Policy parameter.")] = None,
    guard: Annotated[
        Settings, typer.Option("--guard", metavar="KEY=VALUE", help="Guard: cooldown_s, max_step, max_slots, ...")
    ] = None,
    pipeline_set: Annotated[
        Settings, typer.Option("--pipeline-set", metavar="KEY=VALUE", help="Pipeline parameter, e.g. peak_rate.")
    ] = None,
    workload_set: Annotated[
        Settings, typer.Option("--workload-set", metavar="KEY=VALUE", help="Workload parameter, e.g. path of a trace.")
    ] = None,
    sim_set: Annotated[
        Settings, typer.Option("--sim-set", metavar="KEY=VALUE", help="Simulator setting, e.g. downtime_s, rescale.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for journal.jsonl, summary.json and report.html.")] = None,
    memory: Annotated[
        Path | None, typer.Option(help="File with what the policy has learned: loaded at the start, kept up to date.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and record, but change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON, and nothing else.")] = False,
) -> None:
    """Run a pipeline under a scaling policy and say what came of it.

    Example: sluice run q1 --policy ds2 --workload cosine --seed 1 --out runs/first
    """
    if engine != "sim":
        raise BadInputError(f"unknown engine {engine!r}; known: sim")
    chosen = {
        "pipeline": (pipeline, parse_settings(pipeline_set or (), "--pipeline-set")),
        "policy": (policy, parse_settings(settings or ())),
        "workload": (workload, parse_settings(workload_set or (), "--workload-set")),
    }
    spec = RunSpec(
        pipeline=pipelines.create(*chosen["pipeline"]),
        policy=policies.create(*chosen["policy"]),
        workload=workloads.create(*chosen["workload"]),
        names={"engine": engine, **{kind: {"name": n, "settings": s} for kind, (n, s) in chosen.items()}},
        guards=build(Guards, {**THESIS_GUARDS, **parse_settings(guard or (), "--guard")}, "guards"),
        duration_s=duration,
        interval_s=interval,
        speedup=speedup,
        seed=seed,
        slo_s=slo,
        simulator=parse_settings(sim_set or (), "--sim-set"),
        dry_run=dry_run,
    )
    entries = _run_with_progress(spec, out, MemoryStore(memory, policy) if memory else None, quiet=as_json)
    summary = summarise(entries, spec.slo_s)
    if out:
        write_atomically(out / "summary.json", summary.model_dump_json(indent=2).encode())
        _draw(entries, out / "report.html")
    _show(summary, out, as_json)


def _run_with_progress(spec: RunSpec, out: Path | None, store: MemoryStore | None, *, quiet: bool) -> list[Entry]:
    engine, initial = simulated_engine(spec)
    kept = MemoryJournal()
    journal: Journal = kept
    if out:
        path = out / "journal.jsonl"
        path.unlink(missing_ok=True)
        journal = FileJournal(path, durable=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[doing]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task("simulating", total=spec.whole_duration_s, doing="")

        def on_cycle(entry: Entry) -> None:
            slots = sum(entry["plan"]["parallelism"].values())
            progress.update(task, completed=entry["time_s"], doing=f"{entry['time_s'] / 60:.0f} min, {slots} slots")

        run(spec, engine, initial, journal, store=store, on_cycle=None if quiet else on_cycle)
    return list(read_journal(out / "journal.jsonl")) if out else kept.entries


def _draw(entries: list[Entry], path: Path) -> None:
    from sluice.report.series import run_series
    from sluice.report.timeline import write_timeline

    write_timeline(run_series(entries), path)


def _show(summary: Summary, out: Path | None, as_json: bool) -> None:
    if as_json:
        print(summary.model_dump_json(indent=2))
        return
    table = Table("metric", "value")
    figures: dict[str, Any] = json.loads(summary.model_dump_json())
    for name, value in figures.items():
        table.add_row(name, f"{value:,.3f}" if isinstance(value, float) else f"{value:,}")
    console = Console()
    console.print(table)
    if out:
        console.print(f"report: {out / 'report.html'}", soft_wrap=True)
