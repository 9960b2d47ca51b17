"""`sluice reproduce`: Run a paper's experiments again, and compare the figures."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table as RichTable

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.cli.settings import parse_settings
from sluice.errors import unknown_name
from sluice.lab.report.figures import with_unit
from sluice.lab.reproduce import Table, Verdict, count_verdicts, reproductions

STYLES = dict.fromkeys(Verdict, "green") | {Verdict.DIFFERS: "yellow", Verdict.NOT_COMPARABLE: "dim"}


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
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments again, and compare the figures.

    A row's verdict is `matches` (a figure, within the tolerance), `order holds` (every printed pair, or a tie by our
    intervals), `claim holds` (a yes or no), `differs` or `not comparable`. Figures used to calibrate what they
    are compared with are marked, and counted apart. A cause is named only where the table itself shows it.

    Example: sluice reproduce conttune --table 4a --set permutations=2
    """
    reproduction = reproductions.create(paper, parse_settings(settings or []))
    for name in table or []:
        if name not in reproduction.tables():
            raise unknown_name(f"table of {paper}", name, reproduction.tables())
    progress = Console(stderr=True)
    results = []
    for name in table or reproduction.tables():
        with progress.status(f"{paper} {name}") as status:
            results.append(reproduction.run(name, partial(_follow, status, name)))
        if not as_json:
            Console().print(_picture(results[-1]))
    if as_json:
        tables = [result.to_data() for result in results]
        print(json.dumps({"paper": paper, "verdicts": count_verdicts(results), "tables": tables}, indent=2))
    else:
        Console().print(_counts(results))


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
