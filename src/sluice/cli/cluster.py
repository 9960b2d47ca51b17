"""`sluice cluster`: Start, inspect and stop a small Spark cluster on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.listings import AsJson
from sluice.errors import BadInputError
from sluice.spark.cluster import lifecycle
from sluice.spark.cluster.jars import HADOOP
from sluice.spark.cluster.kinds import KINDS, job_environment
from sluice.spark.cluster.kubernetes import programs
from sluice.spark.cluster.plan import ClusterState
from sluice.spark.cluster.workers import alive_workers

cluster = typer.Typer(help="Start, inspect and stop a small Spark cluster on this machine.", no_args_is_help=True)
app.add_typer(cluster, name="cluster")

_FIRST_TIME: dict[str, tuple[str, Callable[[], Path]]] = {
    "yarn": ("getting Hadoop's jars", lambda: HADOOP.folder),
    "kubernetes": ("building Kubernetes, which takes some ten minutes", programs.programs_folder),
}
Home = Annotated[Path | None, typer.Option(help="Where logs and state are kept; default: ~/.sluice/cluster.")]


@cluster.command("up")
def up(
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 2,
    slots: Annotated[int, typer.Option(help="Cores each worker offers; may be more than there are.")] = 4,
    memory: Annotated[int, typer.Option(help="MiB for executors, per slot.")] = 1024,
    cpus: Annotated[
        float | None, typer.Option(help="Cores a worker may use, e.g. 0.5, all it starts included; default: no limit.")
    ] = None,
    on_yarn: Annotated[bool, typer.Option("--yarn", help="A YARN instead of Spark's standalone cluster.")] = False,
    on_kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="A Kubernetes, whose nodes run executor pods as processes.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Start a master and some workers, and wait until they have found each other.

    Workers have addresses of their own (127.0.0.11 and so on). With --cpus each has a quota, or is pinned to cores
    where the system allows no quota.

    Example: sluice cluster up --workers 4 --slots 4 --cpus 0.5
    """
    if on_yarn and on_kubernetes:
        raise BadInputError("a cluster is of one kind: --yarn or --kubernetes, not both")
    kind = "yarn" if on_yarn else "kubernetes" if on_kubernetes else "standalone"
    if cpus is not None and kind != "standalone":
        raise BadInputError(f"--cpus is for the standalone cluster, got {cpus:g} with --{kind}")
    if (first := _FIRST_TIME.get(kind)) is not None and not first[1]().is_dir():
        Console(stderr=True).print(f"{first[0]}, once, into {first[1]()}", soft_wrap=True)
    limits = {} if cpus is None else {"cpus": cpus}
    where = home or lifecycle.default_home()
    state = KINDS[kind].up(where, workers=workers, slots=slots, memory_mb=memory, **limits)
    size = f"{workers} workers x {slots} slots{_limit(state)}"
    sentence = f"master: {state.master_url}\n{size}; web: {state.web_url}\n{_usage(state)}"
    print_facts({**asdict(state), "usage": _usage(state)}, sentence, as_json)


def _limit(state: ClusterState) -> str:
    if state.cpus is None:
        return ""
    return f", each with {state.cpus:g} cpus ({'a quota' if state.cpu_groups else 'pinned to cores'})"


def _usage(state: ClusterState) -> str:
    variables = [f"{name}={value} " for name, value in job_environment(state).items()]
    return f"{''.join(variables)}spark-submit --master {state.master_url} job.py"


@cluster.command("status")
def status(home: Home = None, as_json: AsJson = False) -> None:
    """Say whether a cluster runs here and how many of its workers are alive."""
    state = lifecycle.read_state(home or lifecycle.default_home())
    if state is None:
        print_facts({"running": False}, "no cluster runs here; 'sluice cluster up' starts one", as_json)
        return
    alive = len(alive_workers(state))
    facts = {"running": True, "alive_workers": alive, **asdict(state)}
    print_facts(facts, f"master: {state.master_url}, {alive} of {state.workers} workers alive", as_json)


@cluster.command("revive")
def revive(home: Home = None, as_json: AsJson = False) -> None:
    """Start workers that died again; they join the cluster, and jobs get executors on them.

    Example: kill -9 a worker, see what a job does, and give it back: sluice cluster revive
    """
    revived = lifecycle.revive(home or lifecycle.default_home())
    print_facts(
        {"revived": revived}, f"started again: {', '.join(revived)}" if revived else "no worker is dead", as_json
    )


@cluster.command("down")
def down(home: Home = None, as_json: AsJson = False) -> None:
    """End the cluster and every process of it."""
    ended = lifecycle.down(home or lifecycle.default_home())
    print_facts({"ended": ended}, "ended" if ended else "no cluster runs here", as_json)


def print_facts(facts: dict[str, Any], sentence: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        Console().print(sentence, soft_wrap=True, highlight=False)
