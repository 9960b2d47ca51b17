"""`sluice doctor`: Check what Spark needs here, and say how to repair it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.errors import SluiceError
from sluice.spark.doctor import Finding, diagnose

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@app.command("doctor")
def doctor(
    root: Annotated[Path, typer.Option(help="Folder where topics and checkpoints are going to be.")] = Path("."),
    as_json: AsJson = False,
) -> None:
    """Check what Spark needs here, and say how to repair it.

    That is Spark, Java, Python and whether their versions fit, packages, memory, cores, ports and disk. Exit code 1 if
    something would keep Spark from running; warnings alone are fine.
    """
    findings = diagnose(root)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        show(findings)
    problems = [finding for finding in findings if finding.verdict == "problem"]
    if problems:
        raise SluiceError("; ".join(f"{finding.check}: {finding.advice}" for finding in problems))


def show(findings: list[Finding]) -> None:
    table = Table("check", "", "found", "advice")
    for finding in findings:
        colour = COLOURS[finding.verdict]
        table.add_row(finding.check, f"[{colour}]{finding.verdict}[/]", escape(finding.found), escape(finding.advice))
    Console().print(table)
