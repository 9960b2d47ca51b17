"""Options that take a time: `--interval 15`, `--duration 5m`."""

from __future__ import annotations

import typer

from sluice.durations import seconds
from sluice.errors import BadInputError


def parse_seconds(value: str) -> float:
    try:
        return seconds(value, "the value")
    except BadInputError as error:
        raise typer.BadParameter(str(error)) from error
