"""The live view of a run: one row per operator, the last decisions below."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sluice.journal.file import Entry

DECISIONS_SHOWN = 5
COLUMNS = ("operator", "slots", "in /s", "out /s", "busy", "held back", "lag", "latency s")


class RunView:
    """Takes cycles, gives something to draw. Knows nothing of terminals."""

    def __init__(self, title: str, duration_s: float) -> None:
        self._title = title
        self._duration_s = duration_s
        self._last: Entry | None = None
        self._decisions: deque[str] = deque(maxlen=DECISIONS_SHOWN)

    def add(self, entry: Entry) -> None:
        self._last = entry
        self._decisions.append(_decision(entry))

    def __rich__(self) -> RenderableType:
        if self._last is None:
            return Text(f"{self._title}: starting Spark, waiting for the first window", style="dim")
        observation = self._last["observation"]
        table = Table(*COLUMNS, title=f"{self._title}, {observation['time_s']:.0f} of {self._duration_s:.0f} s")
        for name, metrics in observation["operators"].items():
            table.add_row(name, *_cells(metrics))
        return Group(table, Panel("\n".join(self._decisions), title="last decisions", title_align="left"))


def _cells(metrics: Mapping[str, Any]) -> list[str]:
    return [
        str(metrics["parallelism"]),
        _number(metrics["input_rate"]),
        _number(metrics["output_rate"]),
        _share(metrics["busy"]),
        _share(metrics["backpressure"]),
        _number(metrics["lag"]),
        "" if metrics["latency_s"] is None else f"{metrics['latency_s']:.1f}",
    ]


def _decision(entry: Entry) -> str:
    applied = entry["applied"]
    outcome = "held"
    if applied is not None:
        changes = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in applied["changed"].items())
        outcome = applied["error"] or changes or "unchanged"
    elif entry["cooling"]:
        outcome = "cooling down"
    return f"{entry['time_s']:6.0f} s  {outcome}: {entry['decision']['reason']}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.0%}"
