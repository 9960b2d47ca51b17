"""`sluice kafka`: Start, look at and end a Kafka broker on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from sluice.cli.app import app
from sluice.cli.cluster import print_facts
from sluice.cli.listings import AsJson
from sluice.spark.cluster import lifecycle
from sluice.spark.cluster.plan import ClusterState
from sluice.spark.cluster.workers import alive_workers
from sluice.spark.kafka import broker

kafka = typer.Typer(help="Start, look at and end a Kafka broker on this machine.", no_args_is_help=True)
app.add_typer(kafka, name="kafka")

Home = Annotated[Path | None, typer.Option(help="Where its data, log and state are kept; default: ~/.sluice/kafka.")]


@kafka.command("up")
def up(home: Home = None, as_json: AsJson = False) -> None:
    """Start one broker, for trying and for tests: no security, one copy of everything, this machine only.

    Example: sluice kafka up, then sluice run q5 --engine spark --topics kafka://HOST:PORT
    """
    if not broker.KAFKA.folder.is_dir():
        Console(stderr=True).print(f"getting Kafka's jars, once, into {broker.KAFKA.folder}", soft_wrap=True)
    state = broker.up(home or broker.kafka_home())
    facts = _facts(state)
    usage = f"sluice run q5 --engine spark --topics kafka://{state.master_url}"
    print_facts({**facts, "usage": usage}, f"broker: {state.master_url}\n{usage}", as_json)


@kafka.command("status")
def status(home: Home = None, as_json: AsJson = False) -> None:
    """Say whether a broker runs here and whether it answers."""
    state = lifecycle.read_state(home or broker.kafka_home())
    if state is None:
        print_facts({"running": False}, "no broker runs here; 'sluice kafka up' starts one", as_json)
        return
    answers = bool(alive_workers(state))
    sentence = f"broker: {state.master_url}, {'answers' if answers else 'does not answer'}"
    print_facts({"running": True, "answers": answers, **_facts(state)}, sentence, as_json)


@kafka.command("down")
def down(home: Home = None, as_json: AsJson = False) -> None:
    """End the broker. Its data stay until the next one is started."""
    ended = lifecycle.down(home or broker.kafka_home())
    print_facts({"ended": ended}, "ended" if ended else "no broker runs here", as_json)


def _facts(state: ClusterState) -> dict[str, Any]:
    return {
        "bootstrap": state.master_url,
        "supervisor_pid": state.supervisor_pid,
        "broker_pid": state.process_ids["broker"],
    }
