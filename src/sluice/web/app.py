"""The page's application: journals out, controls in, server-sent events while a journal grows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from sluice.protocol import policies
from sluice.web.controls import use_control
from sluice.web.decisions import decision_detail, decisions_page, last_decision
from sluice.web.library import Library
from sluice.web.metrics import exposition
from sluice.web.security import Guarded
from sluice.web.shelf import Shelf
from sluice.web.snapshot import snapshot
from sluice.web.state import JournalState

POINTS = 600
MOST_POINTS = 4000
LOOK_S = 0.5
"""How often a journal is looked at for a page that watches it."""
BEAT_S = 15.0
"""A line without meaning this often, so that a connection nobody reads is noticed."""
MOST_STREAMS = 200
"""Pages that watch at a time."""
Seen = tuple[Any, ...]
Clairvoyant = Callable[[Shelf], "float | None"]
"""Slot-hours of a planner that knew the load, where that is known."""


@dataclass(frozen=True, kw_only=True)
class PageSettings:
    """What a page needs when it starts."""

    token: str | None = None
    hosts: tuple[str, ...] = ()
    price: float | None = None
    clairvoyant: Clairvoyant | None = None


@dataclass(frozen=True)
class _Place:
    """How much of a journal's time lines a page has; written `edition.rows`."""

    edition: int
    rows: int

    @classmethod
    def parse(cls, text: str) -> _Place | None:
        parts = text.split(".")
        if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
            return None
        return cls(int(parts[0]), int(parts[1]))

    def __str__(self) -> str:
        return f"{self.edition}.{self.rows}"


class Page:
    """The routes of one page."""

    def __init__(self, library: Library, settings: PageSettings) -> None:
        self._library = library
        self._settings = settings
        self._streams = 0
        self.closing = False
        """Set when the server is to stop: streams end then."""

    def application(self) -> ASGIApp:
        assets = files("sluice.web") / "assets"
        app = Starlette(
            routes=[
                Route("/", self.index),
                Route("/metrics", self.metrics),
                Route("/api/journals", self.journals),
                Route("/api/policies", self.policies),
                Route("/api/journals/{id}", self.journal),
                Route("/api/journals/{id}/events", self.events),
                Route("/api/journals/{id}/decisions", self.decisions),
                Route("/api/journals/{id}/decisions/{decision:int}", self.decision),
                Route("/api/journals/{id}/clairvoyant", self.clairvoyant),
                Route("/api/control/{control}", self.control, methods=["POST"]),
                Mount("/assets", StaticFiles(directory=str(assets))),
            ]
        )
        return Guarded(self._ending(app), self._settings.hosts)

    def _ending(self, app: ASGIApp) -> ASGIApp:
        """A request that the end of the server cancels is answered, not a traceback."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await app(scope, receive, send)
            except asyncio.CancelledError:
                if not self.closing:
                    raise
                with suppress(RuntimeError):
                    await JSONResponse({"error": "the page is closing"}, 503)(scope, receive, send)

        return answer

    async def index(self, _: Request) -> Response:
        page = (files("sluice.web") / "assets" / "index.html").read_bytes()
        return Response(page, media_type="text/html; charset=utf-8")

    async def metrics(self, _: Request) -> Response:
        text, kind = await run_in_threadpool(exposition, self._library)
        return Response(text, media_type=kind)

    async def journals(self, _: Request) -> Response:
        found = await run_in_threadpool(lambda: [_listed(shelf) for shelf in self._library.shelves()])
        return _json({"journals": found, "token_needed": True, "has_token": self._settings.token is not None})

    async def policies(self, _: Request) -> Response:
        return _json({"policies": list(policies.names())})

    async def journal(self, request: Request) -> Response:
        shelf = self._shelf(request)
        if shelf is None:
            return _missing()
        points = min(MOST_POINTS, max(10, _number(request, "points", POINTS)))
        since_s = float(_number(request, "last_s", 0))
        return _json(await run_in_threadpool(self.whole, shelf, points, since_s))

    async def decisions(self, request: Request) -> Response:
        shelf = self._shelf(request)
        if shelf is None:
            return _missing()
        before = _number(request, "before", -1)
        return _json(await run_in_threadpool(_decisions, shelf, None if before < 0 else before))

    async def decision(self, request: Request) -> Response:
        shelf = self._shelf(request)
        key = int(request.path_params["decision"])
        found = None if shelf is None else await run_in_threadpool(_decision, shelf, key)
        return _missing() if found is None else _json(found)

    async def clairvoyant(self, request: Request) -> Response:
        shelf, planner = self._shelf(request), self._settings.clairvoyant
        if shelf is None:
            return _missing()
        hours = None if planner is None else await run_in_threadpool(planner, shelf)
        return _json({"slot_hours": hours})

    async def control(self, request: Request) -> Response:
        return await use_control(request, self._library, self._settings.token)

    async def events(self, request: Request) -> Response:
        shelf = self._shelf(request)
        if shelf is None:
            return _missing()
        if self._streams >= MOST_STREAMS:
            return JSONResponse({"error": f"{MOST_STREAMS} pages watch already"}, 503)
        # a browser that lost its connection says what it heard last; the address is that of its first try
        last_seen = request.headers.get("last-event-id", "")
        if not (place := _Place.parse(last_seen)):
            place = _Place(_number(request, "edition", 0), _number(request, "rows", 0))
        return StreamingResponse(self._stream(request, shelf, place), media_type="text/event-stream")

    async def _stream(self, request: Request, shelf: Shelf, place: _Place) -> AsyncIterator[str]:
        """Every change since a place: a snapshot, and the rows of the time lines that are new."""
        seen: Seen = ()
        silent_s = 0.0
        self._streams += 1
        try:
            while not self.closing and not await request.is_disconnected():
                now, data = await run_in_threadpool(self._news, shelf, seen, place)
                if data is not None:
                    seen, silent_s = now, 0.0
                    place = _Place(data["edition"], data["known_rows"])
                    yield f"id: {place}\ndata: {json.dumps(data, allow_nan=False)}\n\n"
                elif silent_s >= BEAT_S:
                    silent_s = 0.0
                    yield ": still here\n\n"
                silent_s += LOOK_S
                await asyncio.sleep(LOOK_S)
        finally:
            self._streams -= 1

    def _news(self, shelf: Shelf, seen: Seen, place: _Place) -> tuple[Seen, dict[str, Any] | None]:
        """What a stream says next; nothing if all is as it was."""
        shelf.read_on()
        with shelf.reading() as state:
            controls = shelf.switches.state if shelf.switches else None
            now = (state.edition, state.version, json.dumps(controls), shelf.is_live, shelf.progress)
            if now == seen:
                return now, None
            known = {"edition": state.edition, "known_rows": len(state.columns), "reading": shelf.progress}
            if shelf.progress is not None or state.edition != place.edition:
                return now, {**known, "anew": shelf.progress is None}
            rows = state.columns.picture(MOST_POINTS, first=place.rows)
            return now, {**self._part(shelf, state), "rows": rows}

    def whole(self, shelf: Shelf, points: int, last_s: float) -> dict[str, Any]:
        """All that a page needs to draw a journal."""
        with shelf.reading() as state:
            times = state.columns.last("time_s")
            since_s = times[-1] - last_s if times and last_s > 0 else 0.0
            rows = state.columns.picture(points, since_s)
            decided = decisions_page(state, is_whole=shelf.progress is None)
            return {**self._part(shelf, state), "rows": rows, **decided}

    def _part(self, shelf: Shelf, state: JournalState) -> dict[str, Any]:
        return {
            **shelf.to_data(),
            **snapshot(state, self._settings.price, is_whole=shelf.progress is None, is_over=not shelf.is_live),
            "edition": state.edition,
            "known_rows": len(state.columns),
            "reading": shelf.progress,
            "control_state": shelf.switches.state if shelf.switches else None,
            "decided": len(state.decisions),
            "intervened": len(state.interventions),
            "last_decision": last_decision(state),
        }

    def _shelf(self, request: Request) -> Shelf | None:
        return self._library.get(str(request.path_params["id"]))


def _decisions(shelf: Shelf, before: int | None) -> dict[str, Any]:
    with shelf.reading() as state:
        return decisions_page(state, before, is_whole=shelf.progress is None)


def _decision(shelf: Shelf, key: int) -> dict[str, Any] | None:
    with shelf.reading() as state:
        return decision_detail(state, key)


def _listed(shelf: Shelf) -> dict[str, Any]:
    return shelf.to_data()


def _number(request: Request, name: str, default: int) -> int:
    try:
        return int(float(request.query_params.get(name, default)))
    except (ValueError, OverflowError):
        return default


def _json(data: Iterable[Any] | dict[str, Any]) -> Response:
    return Response(json.dumps(data, allow_nan=False), media_type="application/json")


def _missing() -> Response:
    return JSONResponse({"error": "no such journal, or no such decision in it"}, 404)
