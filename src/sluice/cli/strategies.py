"""`sluice strategies`: List the placement strategies with their parameters."""

from __future__ import annotations

from sluice.cli.app import app
from sluice.cli.listings import AsJson, show
from sluice.placement import placers


@app.command("strategies")
def list_strategies(as_json: AsJson = False) -> None:
    """List the placement strategies with their parameters."""
    show(placers, as_json)
