"""`sluice profile`: Measure what every operator of a pipeline costs on Spark."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from sluice.cli.app import app
from sluice.cli.durations import parse_seconds
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError
from sluice.files import check_writable, replace_file
from sluice.lab.pipelines import RunsOnSpark, pipelines
from sluice.lab.profiling import UNPACED_RATE, MeasurementPlan, profile_job
from sluice.placement.request import Profile
from sluice.spark.masters import check_master
from sluice.spark.placed.cluster import PLACED_SETTINGS, SETTINGS

WORKER_RATE = 30_000.0
"""Records/s of one slot of a worker, to size its backlog: one that is faster is measured for a shorter time."""


@app.command("profile")
def profile_command(
    pipeline: Annotated[str, typer.Argument(help="A built-in pipeline; see 'sluice pipelines'.")],
    out: Annotated[Path | None, typer.Option(help="File to write; default: PIPELINE-profile.json.")] = None,
    parallelism: Annotated[
        str | None, typer.Option(help="Parallelisms to measure at; default: 1,2,4, with --master 1,2.")
    ] = None,
    measure: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Time measured at each of them.")
    ] = 12.0,
    settle: Annotated[
        float, typer.Option(parser=parse_seconds, metavar="TIME", help="Time left out after each change.")
    ] = 5.0,
    seed: Annotated[int, typer.Option(help="Same seed, same records.")] = 0,
    master: Annotated[
        str | None,
        typer.Option(help="A cluster's master: every operator alone on a worker, unpaced; default: Spark here."),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(help="With --master: an empty folder that all workers share; default: a temporary one."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--pipeline-set", metavar="KEY=VALUE", help="Pipeline parameter, e.g. paced=no.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON, and nothing else.")] = False,
) -> None:
    """Measure what every operator of a pipeline costs on Spark.

    That is capacity, CPU, state access, network and selectivity. Operators run one at a time with a backlog, about
    a minute each. The profile is what the simulator and the placement read: sluice run q1 --profile
    q1-profile.json, sluice place q1-profile.json.

    With --master every operator runs alone on one of the cluster's workers, its slots not paced and its state
    accumulated; CPU time is that of the worker's whole process tree. That is the profile --placement should have.

    Example: sluice profile q1 --parallelism 1,2,4
    """
    given = parse_settings(settings or (), "--pipeline-set")
    if root is not None and master is None:
        raise BadInputError(f"--root is for --master, got {str(root)!r} without it")
    if master is not None:
        check_master(master)
        given = {"paced": "no", **given}
    definition = pipelines.create(pipeline, given)
    if not isinstance(definition, RunsOnSpark):
        raise BadInputError(f"pipeline {pipeline!r} does not run on Spark")
    how = MeasurementPlan(
        parallelisms=_parallelisms(parallelism or ("1,2,4" if master is None else "1,2")),
        settle_s=settle,
        measure_s=measure,
        seed=seed,
        accumulates=master is not None,
        unpaced_rate=UNPACED_RATE if master is None else WORKER_RATE,
    )
    console = Console(stderr=True, quiet=as_json)
    profile = _measured(pipeline, definition, how, console, master=master, root=root)
    path = out or Path(f"{pipeline}-profile.json")
    replace_file(path, profile.model_dump_json(indent=2).encode(), durable=True)
    if as_json:
        print(profile.model_dump_json(indent=2))
    else:
        _show(profile, path)


def _measured(
    name: str, definition: RunsOnSpark, how: MeasurementPlan, console: Console, *, master: str | None, root: Path | None
) -> Profile:
    from sluice.lab.profiling_place import Here, OnWorkers, ProfilingPlace
    from sluice.spark.pipeline.engine import task_threads
    from sluice.spark.session import open_session

    job = definition.spark()
    if root is not None:
        check_writable(root, "--root")
        if any(root.iterdir()):
            raise BadInputError(f"--root must be an empty folder, got {str(root)!r}")
    settings = {**SETTINGS, **PLACED_SETTINGS} if master else {}
    threads = task_threads(job.pipeline, max(how.parallelisms))
    with (
        open_session(f"sluice profile {name}", threads=threads, master=master, settings=settings) as spark,
        TemporaryDirectory(prefix="sluice-profile-", dir=root) as folder,
    ):
        place: ProfilingPlace = Here(spark) if master is None else OnWorkers(spark, master)
        return profile_job(name, job, spark, Path(folder), how, place, console.print)


def _parallelisms(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise BadInputError(f"--parallelism must be numbers such as 1,2,4, got {text!r}") from None


def _show(profile: Profile, path: Path) -> None:
    measured_at = sorted(
        {number for operator in profile.operators if operator.costs for number in operator.costs.capacity}
    )
    capacities = (f"rec/s at {n}" for n in measured_at)
    table = Table(Column("operator", no_wrap=True), *capacities, "out/in", "µs CPU", "state B", "net B")
    for operator in profile.operators:
        costs = operator.costs
        if costs is None:
            continue
        mark = " (estimated)" if costs.estimated else ""
        table.add_row(
            operator.name,
            *(f"{costs.capacity[n]:,.0f}{mark}" for n in measured_at),
            f"{costs.selectivity:.3g}",
            "unknown" if costs.cpu_s_per_record is None else f"{costs.cpu_s_per_record * 1e6:.1f}",
            f"{costs.io_bytes_per_record:.0f}",
            f"{costs.net_bytes_per_record:.0f}",
        )
    console = Console()
    console.print(table)
    slots = "paced" if profile.paced else "real"
    console.print(f"profile: {path} (slots were {slots}; {os.cpu_count()} cores)", soft_wrap=True)
