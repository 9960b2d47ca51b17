"""`sluice reproduce`: Run a paper's experiments again, and compare the figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table as RichTable

from sluice.cli.app import app
from sluice.cli.durations import parse_seconds
from sluice.cli.listings import AsJson
from sluice.cli.settings import parse_settings
from sluice.errors import BadInputError, unknown_name
from sluice.lab.report.figures import with_unit
from sluice.lab.reproduce import Report, Table, Verdict, count_verdicts, reproductions

STYLES = dict.fromkeys(Verdict, "green") | {Verdict.DIFFERS: "yellow", Verdict.NOT_COMPARABLE: "dim"}

Run = Callable[[str, Report], Table]


@app.command("reproduce")
def reproduce(
    paper: Annotated[str, typer.Argument(help="The paper; an unknown name is answered with the known ones.")],
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help="Only this table or figure, by its name in the paper. Repeatable."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the run, key=value. Repeatable.")
    ] = None,
    engine: Annotated[str, typer.Option(help="What runs them: sim, or spark for those tables that can.")] = "sim",
    out: Annotated[
        Path | None, typer.Option(help="On spark: folder of the runs; what is there already is not run again.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="On spark: runs per policy; default 3.")] = None,
    duration: Annotated[
        float | None,
        typer.Option(parser=parse_seconds, metavar="TIME", help="On spark: length of a run, e.g. 10m; default 600."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="On spark: runs at a time, each with a Spark session; default 1.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments again, and compare the figures.

    A row's verdict is `matches` (a figure, within the tolerance), `order holds` (every printed pair, or a tie by our
    intervals), `claim holds` (a yes or no), `differs` or `not comparable`. Figures used to calibrate what they
    are compared with are marked, and counted apart. A cause is named only where the table itself shows it.

    On Spark the workload's time is compressed, and runs are kept: the same command again goes on where it was.

    Example: sluice reproduce conttune --table 4a --set permutations=2
    Example: sluice reproduce kanis --engine spark --table 7.9 --out runs/kanis-spark
    """
    names, run = _on_spark(paper, out, seeds, duration, processes) if engine == "spark" else _simulated(paper, settings)
    if engine not in ("sim", "spark"):
        raise unknown_name("engine", engine, ("sim", "spark"))
    for_spark = (("--out", out), ("--seeds", seeds), ("--duration", duration), ("--processes", processes))
    spark_only = [name for name, given in for_spark if given]
    if engine == "sim" and spark_only:
        raise BadInputError(f"{spark_only[0]} is for --engine spark; on the simulator --set has the settings")
    if engine == "spark" and settings:
        raise BadInputError(f"--set is for the simulator, got {settings[0]!r} with --engine spark")
    for name in table or []:
        if name not in names:
            raise unknown_name(f"table of {paper}", name, names)
    progress = Console(stderr=True)
    results = []
    for name in table or names:
        with progress.status(f"{paper} {name}") as status:
            results.append(run(name, partial(_follow, status, name)))
        if not as_json:
            Console().print(_picture(results[-1]))
    if as_json:
        tables = [result.to_data() for result in results]
        print(json.dumps({"paper": paper, "verdicts": count_verdicts(results), "tables": tables}, indent=2))
    else:
        Console().print(_counts(results))


def _simulated(paper: str, settings: list[str] | None) -> tuple[tuple[str, ...], Run]:
    reproduction = reproductions.create(paper, parse_settings(settings or []))
    return reproduction.tables(), reproduction.run


def _on_spark(
    paper: str, out: Path | None, seeds: int | None, duration_s: float | None, processes: int | None
) -> tuple[tuple[str, ...], Run]:
    from sluice.lab.reproduce.on_spark import SparkRuns, run_on_spark, spark_tables

    reproductions.get(paper)
    if out is None:
        raise BadInputError("--engine spark needs --out, the folder its runs are kept in")
    if not spark_tables(paper):
        raise BadInputError(f"no table of {paper} runs on Spark")
    given = {"seeds": seeds, "duration_s": duration_s, "processes": processes}
    how = SparkRuns(out=out, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    return spark_tables(paper), lambda table, report: run_on_spark(paper, table, how, report)


def _counts(tables: list[Table]) -> RichTable:
    counts = count_verdicts(tables)
    picture = RichTable("figures, each once", *(verdict.value for verdict in Verdict))
    for kind, found in counts.items():
        picture.add_row(kind.replace("_", " "), *map(str, found.values()))
    return picture


def _follow(status: Status, table: str, line: str) -> None:
    status.update(f"{table}: {line}")


def _picture(table: Table) -> RichTable:
    picture = RichTable("", "paper", "ours", "verdict", "note", title=f"{table.name}: {table.title}")
    for row in table.rows:
        style = STYLES[row.verdict]
        picture.add_row(
            row.what,
            with_unit(row.paper, row.unit),
            with_unit(row.ours, row.unit),
            f"[{style}]{row.verdict}[/{style}]{' (fitted)' if row.fitted else ''}",
            f"same figure as in {row.same_as}" if row.same_as and not row.note else row.note,
        )
    if table.notes:
        picture.caption = "\n".join(table.notes)
    return picture
