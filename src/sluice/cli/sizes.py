"""`sluice sizes`: List the instance sizes of a price table."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.learning.instance_sizes import TABLES, price_table

Prices = Annotated[
    str, typer.Option(help=f"Built-in table ({', '.join(TABLES)}) or a JSON file with your own sizes and prices.")
]


@app.command("sizes")
def list_sizes(prices: Prices = "example", as_json: AsJson = False) -> None:
    """List the instance sizes of a price table.

    To use your own: `sluice sizes --json > mine.json`, edit the figures, and give the file to a policy,
    as in `sluice run q1 --policy qescalor --set prices=mine.json`.
    """
    sizes = price_table(prices)
    if as_json:
        print(json.dumps([size.to_data() for size in sizes], indent=2))
        return
    table = Table("size", "cores", "memory MB", "price per hour", title=f"price table {prices}")
    for size in sizes:
        table.add_row(size.name, f"{size.cpu_cores:g}", f"{size.memory_mb:g}", f"{size.price_per_hour:g}")
    Console().print(table)
