"""What the listings share: a registry as a table or as JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from sluice.registry import Registry

Price = Annotated[
    float | None,
    typer.Option(min=0.0, max=1e9, help="Price of an executor-hour: what an attachment saved is also shown in money."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def show(registry: Registry[Any], as_json: bool) -> None:
    entries = registry.describe()
    if as_json:
        print(json.dumps(entries, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "what it does", "parameters", title=registry.kind)
    for entry in entries:
        settings = ", ".join(f"{key}={parameter['default']}" for key, parameter in entry["parameters"].items())
        table.add_row(entry["name"], entry["summary"], settings)
    Console().print(table)
