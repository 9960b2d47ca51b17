"""The live view of a run: one row per operator, the last decisions below."""

from __future__ import annotations

from collections import deque

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sluice.journal.results import CycleReport
from sluice.model import OperatorMetrics

DECISIONS_SHOWN = 5
COLUMNS = ("operator", "slots", "in /s", "out /s", "busy", "held back", "lag", "latency s")


class RunView:
    """Takes cycles, gives something to draw. Knows nothing of terminals."""

    def __init__(self, title: str, duration_s: float) -> None:
        self._title = title
        self._duration_s = duration_s
        self._last: CycleReport | None = None
        self._decisions: deque[str] = deque(maxlen=DECISIONS_SHOWN)

    def add(self, report: CycleReport) -> None:
        if self._last is not None and self._last.cycle.cycle == report.cycle.cycle:
            self._decisions.pop()
        self._last = report
        self._decisions.append(_decision(report))

    def __rich__(self) -> RenderableType:
        if self._last is None:
            return Text(f"{self._title}: starting Spark, waiting for the first window", style="dim")
        observation = self._last.cycle.observation
        table = Table(*COLUMNS, title=f"{self._title}, {observation.time_s:.0f} of {self._duration_s:.0f} s")
        for name, metrics in observation.operators.items():
            table.add_row(name, *_cells(metrics))
        return Group(table, Panel("\n".join(self._decisions), title="last decisions", title_align="left"))


def _cells(metrics: OperatorMetrics) -> list[str]:
    return [
        str(metrics.parallelism),
        _number(metrics.input_rate),
        _number(metrics.output_rate),
        _share(metrics.busy),
        _share(metrics.backpressure),
        _number(metrics.lag),
        "" if metrics.latency_s is None else f"{metrics.latency_s:.1f}",
    ]


def _decision(report: CycleReport) -> str:
    result = report.result
    changes = result.changes() if result.is_action else ""
    what = result.error or changes or result.kind.replace("_", " ")
    return f"{report.cycle.time_s:6.0f} s  {what}: {report.cycle.recommendation.reason}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.0%}"
