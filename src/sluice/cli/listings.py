"""`sluice policies|pipelines|workloads`: what there is to choose from, with parameters and defaults."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sluice.cli.app import app
from sluice.lab.pipelines import pipelines
from sluice.lab.workloads import workloads
from sluice.policy import policies
from sluice.registry import Registry

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def show(registry: Registry[Any], as_json: bool) -> None:
    entries = registry.describe()
    if as_json:
        print(json.dumps(entries, indent=2))
        return
    table = Table("name", "what it does", "parameters", title=registry.kind)
    for entry in entries:
        settings = ", ".join(f"{key}={found['default']}" for key, found in entry["parameters"].items())
        table.add_row(entry["name"], entry["summary"], settings)
    Console().print(table)


@app.command("policies")
def list_policies(as_json: AsJson = False) -> None:
    """List the scaling policies, each with its parameters and their defaults."""
    show(policies, as_json)


@app.command("pipelines")
def list_pipelines(as_json: AsJson = False) -> None:
    """List the built-in pipelines, each with its parameters and their defaults."""
    show(pipelines, as_json)


@app.command("workloads")
def list_workloads(as_json: AsJson = False) -> None:
    """List the workload patterns, each with its parameters and their defaults."""
    show(workloads, as_json)
