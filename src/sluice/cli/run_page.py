"""The page of `sluice run --dashboard`, or none."""

from __future__ import annotations

import sys

from sluice.control.decider import Decider
from sluice.control.switches import Switchboard
from sluice.journal.file import Journal
from sluice.protocol import create_aiming


class NoPage:
    """Nothing is shown, and nobody can ask for anything."""

    switches: Switchboard | None = None

    def show(self, journal: Journal) -> None:
        """Put the run's journal on the page."""

    def stay(self) -> None:
        """Keep the page open for who looks at it."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class RunPage(NoPage):
    """A page with one run, and the controls of its loop."""

    def __init__(
        self, host: str, port: int | None, token: str | None, *, title: str, objective_s: float | None = None
    ) -> None:
        from sluice.cli.dashboard import checked_token, planned_slot_hours
        from sluice.web.app import PageSettings
        from sluice.web.library import Library
        from sluice.web.server import DashboardServer

        self._title = title
        self._library = Library()
        self.switches: Switchboard = Switchboard(lambda name, given: Decider(create_aiming(name, given, objective_s)))
        settings = PageSettings(token=checked_token(token), clairvoyant=planned_slot_hours)
        self._server = DashboardServer(self._library, settings, host=host, port=port)
        print(f"dashboard: {self._server.url}", file=sys.stderr, flush=True)

    def show(self, journal: Journal) -> None:
        from sluice.web.server import watched_journal

        watched_journal(journal, self._library, self._title, self.switches)

    def stay(self) -> None:
        if not sys.stdout.isatty():
            return
        from sluice.cli.dashboard import wait_for_signal

        print(f"the run is over; {self._server.url} stays until Ctrl-C", file=sys.stderr, flush=True)
        wait_for_signal()

    def __exit__(self, *_: object) -> None:
        self._server.close()
