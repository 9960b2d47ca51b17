"""`sluice dashboard`: Show journals, live and past, on a page of this machine."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.app import app
from sluice.errors import BadInputError
from sluice.web.app import PageSettings
from sluice.web.grafana import dashboard_json
from sluice.web.library import Library
from sluice.web.server import DEFAULT_HOST, DashboardServer
from sluice.web.shelf import Shelf

TOKEN_VARIABLE = "SLUICE_DASHBOARD_TOKEN"
Host = Annotated[str, typer.Option(help="Address to listen on; anything but loopback shows journals to the network.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A name this machine is reached by, for a proxy or Prometheus."),
]
Token = Annotated[
    str | None,
    typer.Option(envvar=TOKEN_VARIABLE, show_envvar=True, help="Who has it may use controls; without it nobody may."),
]


@app.command("dashboard")
def dashboard(
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="[DIR|JOURNAL]...", help="Where journals are; default: this folder.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; default: 8642, or one that is free.")
    ] = None,
    host: Host = DEFAULT_HOST,
    allow_host: AllowHost = None,
    token: Token = None,
    price: Annotated[
        float | None, typer.Option(min=0.0, max=1e9, help="Of a slot-hour: costs are also shown in money.")
    ] = None,
    grafana: Annotated[
        bool, typer.Option("--grafana", help="Print a Grafana dashboard for /metrics, and end.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Show journals, live and past, on a page of this machine.

    The page follows journals as they grow, of any process: those of 'sluice run --out', and of attach(journal=...). It
    ends with Ctrl-C. /metrics is for Prometheus. Controls are for runs that open the page themselves: 'sluice run
    --dashboard' and attach(dashboard=True).

    Example: sluice dashboard runs --port 8642
    """
    if grafana:
        print(dashboard_json(), end="")
        return
    if price is not None and not math.isfinite(price):
        raise BadInputError(f"--price must be a number, got {price}")
    settings = PageSettings(
        token=checked_token(token), hosts=tuple(allow_host or ()), price=price, clairvoyant=planned_slot_hours
    )
    server = DashboardServer(Library(places or [Path()]), settings, host=host, port=port)
    print(json.dumps({"url": server.url}) if as_json else f"dashboard: {server.url} (Ctrl-C ends it)", flush=True)
    if server.is_public:
        print(f"sluice: who can reach {server.host} can read these journals", file=sys.stderr, flush=True)
    try:
        wait_for_signal()
    finally:
        server.close()


def checked_token(token: str | None) -> str | None:
    """Refuse one that anybody guesses."""
    if token is not None and len(token) < 8:
        raise BadInputError(f"--token needs at least 8 characters, got {len(token)}")
    return token


def wait_for_signal() -> None:
    """Until Ctrl-C or SIGTERM."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not ended.wait(0.5):
            pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def planned_slot_hours(shelf: Shelf) -> float | None:
    """Of the clairvoyant planner; null for runs whose load and capacities nobody knows, and without its packages."""
    try:
        from sluice.lab.planned import planned_slot_seconds
    except ModuleNotFoundError:
        return None
    state = shelf.state
    times_s = state.columns.last("time_s")
    slot_s = planned_slot_seconds(state.read(state.header_handle), times_s[-1]) if times_s else None
    return None if slot_s is None else slot_s / 3600
