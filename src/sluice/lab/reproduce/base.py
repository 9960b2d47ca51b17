"""A paper's figure beside ours, one row each, with a verdict that can fail.

A reproduction is a frozen dataclass whose fields are its settings; it names its tables and runs one at a time.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from statistics import fmean
from typing import Protocol

from sluice.lab.bench.statistics import estimate
from sluice.model.base import Finite, Frozen, Name
from sluice.registry import Registry

Report = Callable[[str], None]
"""Called with one short line whenever a part of a long run is done."""

UNKNOWN_CAUSE = "cause not known"


class Verdict(str, Enum):
    """How our figure relates to the paper's."""

    MATCHES = "matches"
    """A figure, within the stated tolerance."""
    ORDER_HOLDS = "order holds"
    """Every pair that the paper prints apart is the same way round here, or a tie by our intervals."""
    CLAIM_HOLDS = "claim holds"
    """A yes or no of the paper, the same here."""
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"
    """Beside the paper's figure for the reader: one of the two is missing, or they are not of one thing."""

    def __str__(self) -> str:
        return self.value


class Row(Frozen):
    """One figure of the paper and ours. Where it differs, `note` has the cause if an ablation in the table shows one.

    `fitted`: the figure was used to calibrate what it is compared with. `same_as` names the table that has the same
    figure of the paper already: it is counted there.
    """

    what: Name
    paper: Finite | str | None
    ours: Finite | str | None
    unit: str = ""
    verdict: Verdict
    fitted: bool = False
    note: str = ""
    same_as: str = ""


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


def count_verdicts(tables: Iterable[Table]) -> dict[str, dict[str, int]]:
    """Figures of the paper per verdict, each once: those that were held out, and apart those that were fitted.

    A row without a figure of the paper is only ours, and not counted.
    """
    rows = [row for table in tables for row in table.rows if row.paper is not None and not row.same_as]
    counts = {
        kind: Counter(row.verdict for row in rows if row.fitted is fitted)
        for kind, fitted in (("held_out", False), ("fitted", True))
    }
    return {kind: {verdict.value: found[verdict] for verdict in Verdict} for kind, found in counts.items()}


def figure(
    what: str,
    paper: float | None,
    ours: float | None,
    *,
    unit: str = "",
    tolerance: float = 0.25,
    least: float = 0.0,
    cause: str = "",
    fitted: bool = False,
    same_as: str = "",
) -> Row:
    """A figure that should be near the paper's: within `tolerance`, relative to the paper's value, or within `least`.

    A cause is what an ablation in the same table shows; without one the row says that none is known.
    """
    if paper is None or ours is None:
        return shown(what, paper, ours, unit=unit, same_as=same_as)
    near = abs(ours - paper) <= max(tolerance * abs(paper), least)
    return Row(
        what=what,
        paper=paper,
        ours=ours,
        unit=unit,
        verdict=Verdict.MATCHES if near else Verdict.DIFFERS,
        note="" if near else cause or UNKNOWN_CAUSE,
        fitted=fitted,
        same_as=same_as,
    )


def shown(
    what: str, paper: float | str | None, ours: float | str | None, *, unit: str = "", note: str = "", same_as: str = ""
) -> Row:
    """A figure without a verdict; the note says why it cannot have one."""
    verdict = Verdict.NOT_COMPARABLE
    return Row(what=what, paper=paper, ours=ours, unit=unit, verdict=verdict, note=note, same_as=same_as)


def claim(
    what: str, paper: str, ours: str, holds: bool, *, said: bool = True, note: str = "", same_as: str = ""
) -> Row:
    """A yes or no of the paper. `said` is what the paper's own figures say, which may be the opposite of its text."""
    agrees = holds is said
    return Row(
        what=what,
        paper=paper,
        ours=ours,
        verdict=Verdict.CLAIM_HOLDS if agrees else Verdict.DIFFERS,
        note=note or ("" if agrees else UNKNOWN_CAUSE),
        same_as=same_as,
    )


def order(
    what: str,
    paper: Mapping[str, float],
    ours: Mapping[str, Sequence[float]],
    *,
    cause: str = "",
    same_as: str = "",
) -> Row:
    """The order of the methods, smallest first, pair by pair; `ours` has one value per seed, in the same order.

    A pair that the paper prints apart must be the same way round here. It is a tie if the 95 % interval of our
    difference, seed by seed, holds 0; where most pairs are ties our runs do not tell the order.
    """
    apart = [(low, high) for low, high in itertools.permutations(paper, 2) if paper[low] < paper[high]]
    found = {pair: _compared(ours[pair[0]], ours[pair[1]]) for pair in apart}
    agreed = sum(sign < 0 for sign in found.values())
    swapped = [pair for pair, sign in found.items() if sign > 0]
    ties = len(apart) - agreed - len(swapped)
    decided = agreed and 2 * agreed >= len(apart)
    verdict = Verdict.DIFFERS if swapped else Verdict.ORDER_HOLDS if decided else Verdict.NOT_COMPARABLE
    counts = f"{agreed} of {len(apart)} pairs agree, {ties} tie"
    wrong = "; ".join(f"{low} is not below {high}" for low, high in swapped)
    return Row(
        what=what,
        paper=ranking(paper),
        ours=ranking({name: fmean(values) for name, values in ours.items()}),
        verdict=verdict,
        note=f"{counts}; {wrong}; {cause or UNKNOWN_CAUSE}" if swapped else counts,
        same_as=same_as,
    )


def _compared(low: Sequence[float], high: Sequence[float]) -> int:
    """-1 if the first is below the second, 1 if above, 0 for a tie."""
    difference = estimate(a - b for a, b in zip(low, high, strict=True))
    if difference.mean is None:
        return 0
    if difference.low is None or difference.high is None:
        return (difference.mean > 0) - (difference.mean < 0)
    return (difference.low > 0) - (difference.high < 0)


def ranking(values: Mapping[str, float]) -> str:
    return " < ".join(sorted(values, key=lambda name: values[name]))
