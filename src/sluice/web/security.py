"""Who may ask what: hosts, origins, the token, and what a browser is allowed to do with our pages.

A page of another site must not read journals or use controls through the browser of somebody who may. So a request
needs a host that is ours (a name that an attacker's DNS could point here is refused; an address cannot be pointed
anywhere) and, if it says where it comes from, the same origin.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
SAME = ("same-origin", "none")
"""What `Sec-Fetch-Site` says of our own page and of an address that was typed in."""
BEARER = "bearer "


class Guarded:
    """Wraps an application: refuses foreign hosts and origins, and sets the headers of every answer."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = {"localhost", socket.gethostname().lower(), *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        problem = self.problem(Headers(scope=scope), is_page=scope["path"] == "/" and scope["method"] == "GET")
        app = self._app if problem is None else JSONResponse({"error": problem}, status_code=403)
        await app(scope, receive, send_guarded)

    def problem(self, headers: Headers, *, is_page: bool = False) -> str | None:
        """Why a request with these headers is refused; a link that stands elsewhere may open the page itself."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            return f"host {host[:100]!r} is not one of this page; add it with --allow-host"
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return "requests from other origins are refused"
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in SAME and not (is_page and is_link):
            return "requests from other sites are refused"
        return None

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.strip("[]").lower()
        return name in self._hosts or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def token_problem(token: str | None, headers: Headers) -> tuple[int, str] | None:
    """Status and sentence for a request that may not use controls; the token is compared in constant time."""
    if token is None:
        return 403, "controls are off: start the page with a token"
    given = headers.get("authorization", "")
    if not given.lower().startswith(BEARER):
        return 401, "controls need the header Authorization: Bearer TOKEN"
    # bytes, because compare_digest refuses texts beyond ASCII
    if not hmac.compare_digest(given[len(BEARER) :].strip().encode(), token.encode()):
        return 401, "the token is not the one of this page"
    return None
