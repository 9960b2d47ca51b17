"""The page served from a thread of this process, until it is closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sluice.control.switches import Switchboard
from sluice.errors import BadInputError, needs_extra
from sluice.journal.file import FileJournal, Journal, MemoryJournal
from sluice.journal.records import AnyRecord

with needs_extra("the dashboard", "dashboard"):
    import uvicorn

    from sluice.web.app import Page, PageSettings
    from sluice.web.library import Library
    from sluice.web.lines import FileLines, MemoryLines
    from sluice.web.security import is_loopback

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8642


class DashboardServer:
    """Listens at once; `port` is the one it got."""

    def __init__(
        self,
        library: Library,
        settings: PageSettings | None = None,
        *,
        host: str = DEFAULT_HOST,
        port: int | None = None,
    ) -> None:
        settings = settings or PageSettings()
        hosts = (*settings.hosts, *(() if is_loopback(host) else (host,)))
        self._page = Page(library, PageSettings(**{**vars(settings), "hosts": hosts}))
        self._socket = _listen(host, port)
        self.host = host
        self.port = int(self._socket.getsockname()[1])
        # no access log: it would hold whatever a browser puts into an address
        config = uvicorn.Config(
            self._page.application(), log_level="error", access_log=False, lifespan="off", timeout_graceful_shutdown=2
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="sluice-dashboard", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        shown = "127.0.0.1" if self.host in ("0.0.0.0", "") else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{shown}:{self.port}/"

    @property
    def is_public(self) -> bool:
        return not is_loopback(self.host)

    def close(self) -> None:
        self._page.closing = True
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def watched_journal(journal: Journal, library: Library, title: str, switches: Switchboard) -> Callable[[], Any]:
    """Put a journal that this process writes on the page; the answer takes it from there when called."""
    if isinstance(journal, FileJournal):
        library.add(title, FileLines(journal.path), path=Path(journal.path), switches=switches)
        return lambda: None
    if isinstance(journal, MemoryJournal):
        lines = MemoryLines()

        def keep(record: AnyRecord) -> None:
            lines.append(record.to_json().encode())

        for record in journal.records:
            keep(record)
        journal.on_append = keep
        library.add(title, lines, switches=switches)

        def release() -> None:
            journal.on_append = None

        return release
    raise BadInputError(f"the dashboard cannot follow a journal of type {type(journal).__name__}")


def _listen(host: str, port: int | None) -> socket.socket:
    """Without a port the usual one, or any that is free."""
    if not host.strip():
        raise BadInputError(
            f"the dashboard needs an address to listen on, got {host!r}; 0.0.0.0 is all of this machine's"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in (DEFAULT_PORT, 0) if port is None else (port,):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, tried))
        except (OSError, OverflowError, ValueError) as error:
            found.close()
            if port is None and tried:
                continue
            why = getattr(error, "strerror", None) or error
            raise BadInputError(f"cannot serve the dashboard on port {tried} of {host}: {why}") from error
        found.listen(128)
        return found
    raise AssertionError("a free port is tried last")
