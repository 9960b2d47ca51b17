"""`sluice cluster`: Start, inspect and stop a small Spark cluster on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.spark.cluster import jars, lifecycle, standalone, yarn
from sluice.spark.cluster.plan import ClusterState
from sluice.spark.cluster.workers import alive_workers

cluster = typer.Typer(help="Start, inspect and stop a small Spark cluster on this machine.", no_args_is_help=True)
app.add_typer(cluster, name="cluster")

Home = Annotated[Path | None, typer.Option(help="Where logs and state are kept; default: ~/.sluice/cluster.")]


@cluster.command("up")
def up(
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 2,
    slots: Annotated[int, typer.Option(help="Cores each worker offers; may be more than there are.")] = 4,
    memory: Annotated[int, typer.Option(help="MiB for executors, per slot.")] = 1024,
    on_yarn: Annotated[bool, typer.Option("--yarn", help="A YARN instead of Spark's standalone cluster.")] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Start a master and some workers, and wait until they have found each other.

    Example: sluice cluster up --workers 2 --slots 4
    """
    if on_yarn and not jars.hadoop_folder().is_dir():
        Console(stderr=True).print(f"getting Hadoop's jars, once, into {jars.hadoop_folder()}", soft_wrap=True)
    start = yarn.up if on_yarn else standalone.up
    state = start(home or lifecycle.default_home(), workers=workers, slots=slots, memory_mb=memory)
    sentence = f"master: {state.master_url}\n{workers} workers x {slots} slots; web: {state.web_url}\n{_usage(state)}"
    _print({**asdict(state), "usage": _usage(state)}, sentence, as_json)


def _usage(state: ClusterState) -> str:
    variables = [f"{name}={value} " for name, value in yarn.environment(state).items()] if state.conf_dir else []
    return f"{''.join(variables)}spark-submit --master {state.master_url} job.py"


@cluster.command("status")
def status(home: Home = None, as_json: AsJson = False) -> None:
    """Say whether a cluster runs here and how many of its workers are alive."""
    state = lifecycle.read_state(home or lifecycle.default_home())
    if state is None:
        _print({"running": False}, "no cluster runs here; 'sluice cluster up' starts one", as_json)
        return
    alive = len(alive_workers(state))
    facts = {"running": True, "alive_workers": alive, **asdict(state)}
    _print(facts, f"master: {state.master_url}, {alive} of {state.workers} workers alive", as_json)


@cluster.command("down")
def down(home: Home = None, as_json: AsJson = False) -> None:
    """End the cluster and every process of it."""
    ended = lifecycle.down(home or lifecycle.default_home())
    _print({"ended": ended}, "ended" if ended else "no cluster runs here", as_json)


def _print(facts: dict[str, Any], sentence: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        Console().print(sentence, soft_wrap=True, highlight=False)
