"""`sluice workloads`: List the workload patterns with their parameters."""

from __future__ import annotations

from sluice.cli.app import app
from sluice.cli.listings import AsJson, show
from sluice.lab.workloads import workloads


@app.command("workloads")
def list_workloads(as_json: AsJson = False) -> None:
    """List the workload patterns with their parameters."""
    show(workloads, as_json)
