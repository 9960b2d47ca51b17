"""`sluice cluster`: Start, look at and end a small Spark cluster on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.spark.cluster import standalone

cluster = typer.Typer(help="Start, look at and end a small Spark cluster on this machine.", no_args_is_help=True)
app.add_typer(cluster, name="cluster")

Home = Annotated[Path | None, typer.Option(help="Where logs and state are kept; default: ~/.sluice/cluster.")]


@cluster.command("up")
def up(
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 2,
    slots: Annotated[int, typer.Option(help="Cores each worker offers; may be more than there are.")] = 4,
    memory: Annotated[int, typer.Option(help="MiB for executors, per slot.")] = 1024,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Start a master and some workers, and wait until they have found each other.

    Example: sluice cluster up --workers 2 --slots 4
    """
    state = standalone.up(home or standalone.default_home(), workers=workers, slots=slots, memory_mb=memory)
    facts = asdict(state)
    _print(facts, f"master: {state.master_url}\n{workers} workers x {slots} slots; web: {state.web_url}", as_json)


@cluster.command("status")
def status(home: Home = None, as_json: AsJson = False) -> None:
    """Say whether a cluster runs here and how many of its workers are alive."""
    state = standalone.read_state(home or standalone.default_home())
    if state is None:
        _print({"running": False}, "no cluster runs here; 'sluice cluster up' starts one", as_json)
        return
    alive = len(standalone.alive_workers(state))
    facts = {"running": True, "alive_workers": alive, **asdict(state)}
    _print(facts, f"master: {state.master_url}, {alive} of {state.workers} workers alive", as_json)


@cluster.command("down")
def down(home: Home = None, as_json: AsJson = False) -> None:
    """End the cluster and every process of it."""
    ended = standalone.down(home or standalone.default_home())
    _print({"ended": ended}, "ended" if ended else "no cluster runs here", as_json)


def _print(facts: dict[str, Any], sentence: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        Console().print(sentence, soft_wrap=True, highlight=False)
