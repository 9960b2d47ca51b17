"""`sluice journal`: Say what a journal's records look like, or check one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.app import app
from sluice.cli.listings import AsJson

journal = typer.Typer(help="Say what a journal's records look like, or check one.", no_args_is_help=True)
app.add_typer(journal, name="journal")


@journal.command("schema")
def schema(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; this command always does.")] = True,  # noqa: ARG001
) -> None:
    """Print the JSON Schema that every line of a journal follows.

    Example: sluice journal schema > journal.schema.json
    """
    from sluice.journal.records import journal_schema

    print(json.dumps(journal_schema(), indent=2))


@journal.command("check")
def check(
    path: Annotated[Path, typer.Argument(help="journal.jsonl, or the folder it is in.")], as_json: AsJson = False
) -> None:
    """Read a journal, of this version or an older one, and say what is in it.

    Example: sluice journal check runs/first
    """
    from sluice.journal.file import read_runs

    runs = [
        {
            "engine": run.header.engine,
            "policy": run.header.policy.label,
            "cycles": len(run.reports),
            "actions": sum(report.result.is_action for report in run.reports),
            "ended": run.end is not None,
        }
        for run in read_runs(path)
    ]
    if as_json:
        print(json.dumps({"runs": runs}, indent=2))
        return
    for run in runs:
        end = "ended" if run["ended"] else "cut off or still running"
        print(f"{run['policy']} on {run['engine']}: {run['cycles']} cycles, {run['actions']} actions, {end}")
