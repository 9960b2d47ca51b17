"""`POST /api/control/NAME?journal=ID`: what people may do to a loop in this process.

Without a journal it is the one loop that runs here.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse

from sluice.errors import BadInputError
from sluice.journal.records import Choice, Control
from sluice.model.base import Frozen, Name, Parallelism
from sluice.web.library import Library
from sluice.web.security import token_problem
from sluice.web.shelf import Shelf

MOST_BYTES = 65_536
ELSEWHERE = "this journal is written by another process, or by none: controls act on loops of this one only"
UNCLEAR = "no such journal; say which with ?journal=ID where not exactly one loop runs here"
OVER = "the run is over: nothing takes controls any more"


class Nothing(Frozen):
    """A control without settings."""


class Switch(Frozen):
    on: bool


class Pin(Frozen):
    operator: Name
    parallelism: Parallelism


class Unpin(Frozen):
    operator: Name


class PolicyChange(Frozen):
    name: Name
    settings: dict[str, Any] = Field(default_factory=dict)


BODIES: dict[Control, type[Frozen]] = {
    "pause": Nothing,
    "resume": Nothing,
    "dry_run": Switch,
    "pin": Pin,
    "unpin": Unpin,
    "policy": PolicyChange,
}


async def use_control(request: Request, library: Library, token: str | None) -> JSONResponse:
    """The token first: who has none learns nothing of what is here."""
    if (problem := token_problem(token, request.headers)) is not None:
        status, text = problem
        return JSONResponse({"error": text}, status, {"www-authenticate": "Bearer"} if status == 401 else None)
    shelf = _shelf(library, request.query_params.get("journal"))
    if shelf is None:
        return JSONResponse({"error": UNCLEAR}, 404)
    name = str(request.path_params["control"])
    if name not in BODIES:
        return JSONResponse({"error": f"unknown control {name!r}; known: {', '.join(BODIES)}"}, 404)
    if shelf.switches is None:
        return JSONResponse({"error": ELSEWHERE}, 409)
    if not shelf.switches.state["connected"]:
        return JSONResponse({"error": OVER}, 409)
    try:
        _ask(shelf, name, BODIES[name].parse(await _body(request), name))
    except BadInputError as error:
        return JSONResponse({"error": str(error)}, 400)
    return JSONResponse({"accepted": name, "controls": shelf.switches.state}, 202)


def _shelf(library: Library, key: str | None) -> Shelf | None:
    if key is not None:
        return library.get(key)
    shelves = library.shelves()
    own = [shelf for shelf in shelves if shelf.switches is not None]
    candidates = own or shelves
    return candidates[0] if len(candidates) == 1 else None


async def _body(request: Request) -> Any:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            raise BadInputError(f"a control takes at most {MOST_BYTES} bytes")
    try:
        return json.loads(data or b"{}")
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"not JSON: {error}") from error


def _ask(shelf: Shelf, name: str, body: Frozen) -> None:
    assert shelf.switches is not None
    ask = shelf.switches.ask
    match body:
        case Pin():
            ask("pin", operator=body.operator, parallelism=body.parallelism)
        case Unpin():
            ask("unpin", operator=body.operator)
        case Switch():
            ask("dry_run", on=body.on)
        case PolicyChange():
            ask("policy", policy=Choice(name=body.name, settings=body.settings))
        case _:
            ask("pause" if name == "pause" else "resume")
