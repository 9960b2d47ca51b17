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
from sluice.spark.doctor import Finding, Versions, diagnose

COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@app.command("doctor")
def doctor(
    root: Annotated[Path, typer.Option(help="Folder where topics and checkpoints are going to be.")] = Path("."),
    spark: Annotated[str | None, typer.Option(metavar="VERSION", help="Of pyspark; default: the one here.")] = None,
    java: Annotated[str | None, typer.Option(metavar="VERSION", help="Of Java; default: the one here.")] = None,
    python: Annotated[str | None, typer.Option(metavar="VERSION", help="Of Python; default: this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check what Spark needs here, and say how to repair it.

    That is Spark, Java, Python and whether their versions fit, packages, memory, cores, ports and disk. Versions may be
    given, to know before you install them. Exit code 1 if something would keep Spark from running; warnings alone are
    fine.

    Example: sluice doctor --spark 3.5.9 --java 11 --python 3.10
    """
    findings = diagnose(root, Versions(spark=spark, java=java, python=python))
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
