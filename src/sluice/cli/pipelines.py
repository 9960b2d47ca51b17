"""`sluice pipelines`: List the built-in pipelines with their parameters."""

from __future__ import annotations

from sluice.cli.app import app
from sluice.cli.listings import AsJson, show
from sluice.lab.pipelines import pipelines


@app.command("pipelines")
def list_pipelines(as_json: AsJson = False) -> None:
    """List the built-in pipelines with their parameters."""
    show(pipelines, as_json)
