"""Numbers as people read them: a few digits that mean something, never an exponent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from sluice.lab.bench.statistics import Estimate

MOST_PLACES = 4
UNKNOWN = "-"


def plain(value: float, digits: int = 3) -> str:
    """1298765.4 -> '1,298,765', 12.345 -> '12.3', 0.0004 -> '0.0004'."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    places = min(max(0, digits - 1 - math.floor(math.log10(abs(value)))), MOST_PLACES)
    text = f"{value:,.{places}f}"
    text = text.rstrip("0").rstrip(".") if places else text
    return "0" if text == "-0" else text


def figure(found: Estimate, *, sign: str = " ± ") -> str:
    """`12.3 ± 0.4`: the mean and half its interval."""
    if found.mean is None:
        return UNKNOWN
    if found.low is None:
        return plain(found.mean)
    return f"{plain(found.mean)}{sign}{plain(found.mean - found.low, 1)}"


def narrow(found: Estimate) -> str:
    """`12.3±0.4`, so that eight of them fit on a terminal."""
    return figure(found, sign="±")


def with_unit(value: float | str | None, unit: str) -> str:
    if value is None:
        return UNKNOWN
    return value if isinstance(value, str) else f"{plain(value, 4)} {unit}".rstrip()


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in a document."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |" for line in lines)
