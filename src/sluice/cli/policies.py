"""`sluice policies`: List the scaling policies with their parameters."""

from __future__ import annotations

from sluice.cli.app import app
from sluice.cli.listings import AsJson, show
from sluice.protocol import policies


@app.command("policies")
def list_policies(as_json: AsJson = False) -> None:
    """List the scaling policies with their parameters."""
    show(policies, as_json)
