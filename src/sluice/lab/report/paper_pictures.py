"""Two pictures of the papers run again: verdicts per paper, and what our additions to ContTune are worth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sluice.lab.report.export import COLOURS, blank
from sluice.lab.reproduce import Table, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICT_COLOURS = {
    Verdict.MATCHES: "#009e73",
    Verdict.ORDER_HOLDS: "#56b4e9",
    Verdict.CLAIM_HOLDS: "#0072b2",
    Verdict.DIFFERS: "#d55e00",
    Verdict.NOT_COMPARABLE: "#c8c8c8",
}
ADDED, RECONFIGURATIONS = "added", "reconfigurations per tuning time"
INTERVAL = re.compile(r"([\d.,]+)(?: ± ([\d.,]+))?")


def verdict_figure(counts: Mapping[str, Mapping[str, int]]) -> Figure:
    """One bar per paper: how many of its figures got which verdict."""
    picture = blank(8.0, 0.6 * len(counts) + 1.4)
    axes = picture.add_subplot()
    for place, found in enumerate(counts.values()):
        start = 0
        for verdict, colour in VERDICT_COLOURS.items():
            number = found[verdict.value]
            axes.barh(place, number, left=start, color=colour)
            if number:
                axes.text(start + number / 2, place, str(number), ha="center", va="center", fontsize=8)
            start += number
    axes.set_yticks(range(len(counts)), list(counts))
    axes.set_xlabel("figures of the paper, held out")
    axes.invert_yaxis()
    handles = [_patch(colour, verdict.value) for verdict, colour in VERDICT_COLOURS.items()]
    axes.legend(handles=handles, fontsize=8, ncols=len(handles), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return picture


def added_figure(tables: Sequence[Table]) -> Figure | None:
    """Reconfigurations by method, a group of bars per curve; null without that table."""
    rows = [row for table in tables if table.name == ADDED for row in table.rows if row.what.endswith(RECONFIGURATIONS)]
    if not rows:
        return None
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        curve, _, rest = row.what.partition(": ")
        found.setdefault(curve, {})[rest.removesuffix(f", {RECONFIGURATIONS}")] = _interval(str(row.ours))
    picture = blank(8.0, 3.6)
    axes = picture.add_subplot()
    methods = list(next(iter(found.values())))
    width = 0.8 / len(methods)
    for number, method in enumerate(methods):
        places = [group + number * width for group in range(len(found))]
        values = [by_method[method] for by_method in found.values()]
        means, halves = zip(*values, strict=True)
        axes.bar(places, means, width, yerr=halves, capsize=2, color=COLOURS[number], label=method)
    axes.set_xticks([group + 0.4 - width / 2 for group in range(len(found))], list(found))
    axes.set_ylabel(RECONFIGURATIONS)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return picture


def _interval(text: str) -> tuple[float, float]:
    match = INTERVAL.match(text)
    assert match is not None, text
    mean, half = (float((part or "0").replace(",", "")) for part in match.groups())
    return mean, half


def _patch(colour: str, label: str) -> object:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)
