"""A paper's figure beside ours, one row each, with a verdict.

A reproduction is a frozen dataclass whose fields are its settings; it names its tables and runs one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Protocol

from sluice.model.base import Finite, Frozen, Name
from sluice.registry import Registry

Report = Callable[[str], None]
"""Called with one short line whenever a part of a long run is done."""


class Verdict(str, Enum):
    """How our figure relates to the paper's."""

    ORDER_HOLDS = "order holds"
    WITHIN = "within tolerance"
    DIFFERS = "differs"
    SHOWN = "shown"
    """Put beside the paper's figure for the reader; nothing is claimed about it."""

    def __str__(self) -> str:
        return self.value


class Row(Frozen):
    """One figure of the paper and ours. `note` says what differs in the set-up where the verdict is `differs`."""

    what: Name
    paper: Finite | str | None
    ours: Finite | str | None
    unit: str = ""
    verdict: Verdict
    note: str = ""


class Table(Frozen):
    """A table or figure of the paper; `name` is what `--table` takes."""

    name: Name
    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


class Reproduction(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the settings of the run."""

    def tables(self) -> tuple[str, ...]:
        """The names of the tables it can run, in the paper's order."""
        ...

    def run(self, table: str, report: Report) -> Table: ...


reproductions: Registry[Reproduction] = Registry("reproduction", "sluice.lab.reproduce", extra="lab")
reproduction = reproductions.register


def figure(
    what: str, paper: float, ours: float | None, *, unit: str = "", tolerance: float = 0.25, because: str = ""
) -> Row:
    """A figure that should be near the paper's: within `tolerance`, relative to the paper's value."""
    near = ours is not None and abs(ours - paper) <= tolerance * abs(paper)
    verdict = Verdict.WITHIN if near else Verdict.DIFFERS
    return Row(what=what, paper=paper, ours=ours, unit=unit, verdict=verdict, note="" if near else because)


def shown(what: str, paper: float | str | None, ours: float | str | None, *, unit: str = "", note: str = "") -> Row:
    """A figure without a claim."""
    return Row(what=what, paper=paper, ours=ours, unit=unit, verdict=Verdict.SHOWN, note=note)


def order(
    what: str,
    paper: Mapping[str, float],
    ours: Mapping[str, float],
    *,
    tie: float = 0.05,
    because: str = "",
) -> Row:
    """The order of the methods, smallest first.

    It holds if no two methods of the paper that differ by more than `tie` (relative) have changed places by more
    than `tie` in ours.
    """
    places = swapped(paper, ours, tie)
    note = "; ".join(f"{low} is not below {high}" for low, high in places)
    return Row(
        what=what,
        paper=ranking(paper),
        ours=ranking(ours),
        verdict=Verdict.DIFFERS if places else Verdict.ORDER_HOLDS,
        note=" because ".join(part for part in (note, because) if part) if places else "",
    )


def swapped(paper: Mapping[str, float], ours: Mapping[str, float], tie: float) -> list[tuple[str, str]]:
    """Pairs of which the paper has the first clearly below the second, and we clearly above."""
    return [
        (low, high)
        for low in paper
        for high in paper
        if paper[low] < paper[high] * (1 - tie) and ours[low] > ours[high] * (1 + tie)
    ]


def ranking(values: Mapping[str, float]) -> str:
    return " < ".join(sorted(values, key=lambda name: values[name]))
