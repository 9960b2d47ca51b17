"""`sluice explain`: Say why every scaling action happened, and what it did."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.listings import AsJson, Price
from sluice.journal.explain import explain, held_back, shadows_of
from sluice.journal.file import read_runs
from sluice.journal.savings import savings_of


@app.command("explain")
def explain_command(
    journal: Annotated[Path, typer.Argument(help="journal.jsonl of a run, or the folder it is in.")],
    price: Price = None,
    as_json: AsJson = False,
) -> None:
    """Say why every scaling action happened, and what it did.

    The journal of an attachment ends with what it saved.

    Example: sluice explain runs/first/journal.jsonl
    """
    runs = read_runs(journal)
    found = [one for run in runs for one in explain(run)]
    causes: dict[str, int] = {}
    for run in runs:
        for cause, times in held_back(run).items():
            causes[cause] = causes.get(cause, 0) + times
    saved = savings_of(runs, price)
    shadows = [one for run in runs for one in shadows_of(run)]
    if as_json:
        content: dict[str, Any] = {"actions": [asdict(one) for one in found], "held_back": causes}
        content |= {"shadows": [asdict(one) for one in shadows]} if shadows else {}
        print(json.dumps({**content, **({"savings": saved.to_data()} if saved else {})}, indent=2))
        return
    console = Console(highlight=False)
    for number, run in enumerate(runs):
        if len(runs) > 1:
            how = "resumed" if number else "started"
            console.print(f"{how}: {run.header.policy.label} on {run.header.pipeline.label}", markup=False)
        for one in explain(run):
            console.print(one.sentence(), soft_wrap=True, markup=False)
    console.print(f"{len(found)} scaling actions.", markup=False)
    for cause, times in causes.items():
        console.print(f"held back {times} times: {cause}", soft_wrap=True, markup=False)
    for shadow in shadows:
        console.print(shadow.sentence(), soft_wrap=True, markup=False)
    for sentence in saved.sentences() if saved else ():
        console.print(sentence, soft_wrap=True, markup=False)
