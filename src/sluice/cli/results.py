"""`sluice results`: Write results.md, with pictures, from benches and papers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.lab.report.results import write_results


@app.command("results")
def results(
    bench: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a bench, or a .json of rows that a benchmark keeps. Repeatable."),
    ] = None,
    reproduced: Annotated[
        list[Path] | None, typer.Option(help="Output of 'sluice reproduce PAPER --json'. Repeatable.")
    ] = None,
    learned: Annotated[
        Path | None, typer.Option(help="Rows of benchmarks.learning_on_spark: learning policies on Spark.")
    ] = None,
    findings: Annotated[
        Path | None, typer.Option(help="Markdown with what was found, put first; all else is written from outputs.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.md and its pictures.")] = Path("docs"),
    as_json: AsJson = False,
) -> None:
    """Write results.md, with pictures, from benches and papers.

    results.md is short; its folder results/ gets all tables and pictures. Only the sentences of the findings are typed
    by hand: their figures are places, {{page | section | row | column}}, filled from the tables. What is
    not given keeps its page, with its date.

    Example: sluice results --bench runs/full --reproduced runs/kanis.json --out docs
    """
    written = write_results(out, bench or [], reproduced or [], findings, learned)
    if as_json:
        print(json.dumps([str(path) for path in written], indent=2))
    else:
        Console().print(f"{written[0]} and {len(written) - 1} files beside it", soft_wrap=True)
