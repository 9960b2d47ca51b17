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
from sluice.lab.reproduce import Table, Verdict, reproductions

STYLES = {Verdict.ORDER_HOLDS: "green", Verdict.WITHIN: "green", Verdict.DIFFERS: "yellow", Verdict.SHOWN: "dim"}


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

    They run on the simulator. A row's verdict is `order holds` or `within tolerance` where that is so; else `differs`,
    with the reason.
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
        print(json.dumps({"paper": paper, "tables": [result.to_data() for result in results]}, indent=2))


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
            f"[{style}]{row.verdict}[/{style}]",
            row.note,
        )
    if table.notes:
        picture.caption = "\n".join(table.notes)
    return picture
