"""`sluice report`: Make one HTML page of a run, a bench, or several of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.listings import AsJson, Price
from sluice.errors import SluiceError
from sluice.lab.report.content import collect
from sluice.lab.report.export import write_csv, write_pictures
from sluice.lab.report.page import write_page


@app.command("report")
def report(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of 'sluice run --out' or 'sluice bench --out', or journals of attach.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; default: report.html in the first folder.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the tables as CSV into this folder.")] = None,
    png: Annotated[Path | None, typer.Option(help="Also write the pictures as PNG into this folder.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="The policy to compare the others with; default: ds2, or the first.")
    ] = None,
    price: Price = None,
    as_json: AsJson = False,
) -> None:
    """Make one HTML page of a run, a bench, or several of them.

    The report of an attachment begins with what it saved. The page is one file and needs no network: it can be
    mailed, and opened on a phone. Plots and tables can be saved from it.

    Example: sluice report runs/small --csv runs/small/csv
    """
    content = collect(folders, baseline, price)
    path = out or (folders[0] if folders[0].is_dir() else folders[0].parent) / "report.html"
    written = [path]
    try:
        write_page(content, path)
        written += write_csv(content, csv) if csv else []
        written += write_pictures(content, png) if png else []
    except OSError as error:
        raise SluiceError(f"cannot write the report: {error}") from error
    if as_json:
        facts = {"page": str(path), "files": [str(found) for found in written]}
        print(json.dumps({**facts, **({"savings": content.savings} if content.savings else {})}, indent=2))
    else:
        for saved in content.savings.values():
            for sentence in saved["sentences"]:
                Console(highlight=False).print(sentence, soft_wrap=True, markup=False)
        Console().print(f"report: {path}" + (f" and {len(written) - 1} files" if written[1:] else ""), soft_wrap=True)
