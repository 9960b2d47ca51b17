"""The page of an attachment: `attach(dashboard=True)`."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typing_extensions import Self

from sluice.control.switches import Switchboard
from sluice.errors import BadInputError, needs_extra
from sluice.journal.file import Journal
from sluice.spark.attach.log import line
from sluice.spark.attach.settings import port_of

if TYPE_CHECKING:
    from sluice.web.server import DashboardServer

log = logging.getLogger("sluice")
SHORTEST_TOKEN = 8
_TOKEN = re.compile(rf"[!-~]{{{SHORTEST_TOKEN},}}")
"""What a browser can send in a header."""


@dataclass
class AttachmentPage:
    """Where it listens and who may use its controls; served from `open` to `close`."""

    host: str
    port: int | None
    token: str | None = field(repr=False)
    _server: DashboardServer | None = None

    def open(self, journal: Journal, title: str, switches: Switchboard) -> Self:
        with needs_extra("dashboard", "dashboard"):
            from sluice.web.app import PageSettings
            from sluice.web.library import Library
            from sluice.web.server import DashboardServer, watched_journal

        library = Library()
        watched_journal(journal, library, title, switches)
        self._server = DashboardServer(library, PageSettings(token=self.token), host=self.host, port=self.port)
        log.info("%s", line({"event": "dashboard", "url": self._server.url, "controls": self.token is not None}))
        return self

    @property
    def url(self) -> str | None:
        return self._server.url if self._server else None

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


def page_of(wanted: object, host: object, port: object, token: object) -> AttachmentPage | None:
    """Checked before anything is started; null if no page is wanted."""
    if not isinstance(wanted, bool):
        raise BadInputError(f"dashboard must be True or False, got {wanted!r}")
    address, checked = host_of(host, "dashboard_host"), port_of(port, "dashboard_port")
    if token is not None and (not isinstance(token, str) or not _TOKEN.fullmatch(token)):
        raise BadInputError(
            f"dashboard_token must be a text of at least {SHORTEST_TOKEN} letters, digits and signs, without spaces"
        )
    return AttachmentPage(address, checked, token) if wanted else None


def host_of(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadInputError(f"{name} must be an address to listen on, got {value!r}")
    return value.strip()
