"""Box plots of figures 7 and 8, timelines of figure 9."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sluice.journal.results import CycleReport
from sluice.lab.reproduce.capsys_runs import Measured
from sluice.lab.reproduce.simulated import reconfigured

COLOURS = {"caps": "#228833", "default": "#ee6677", "evenly": "#4477aa"}
PANELS: tuple[tuple[str, Callable[[Measured], float]], ...] = (
    ("throughput, share of the target", lambda run: run.throughput_share),
    ("backpressure at the source", lambda run: run.backpressure),
    ("latency, s", lambda run: run.latency_s),
)


def draw_boxes(boxes: Mapping[str, Mapping[str, list[Measured]]], path: Path) -> None:
    """One panel per metric, one group per query, one box per strategy."""
    from plotly.graph_objects import Box
    from plotly.subplots import make_subplots

    figure: Any = make_subplots(rows=len(PANELS), cols=1, shared_xaxes=True, subplot_titles=[t for t, _ in PANELS])
    for row, (_, value) in enumerate(PANELS, start=1):
        for strategy, colour in COLOURS.items():
            queries = [query for query, runs in boxes.items() for _ in runs[strategy]]
            values = [value(run) for runs in boxes.values() for run in runs[strategy]]
            figure.add_trace(
                Box(x=queries, y=values, name=strategy, marker_color=colour, showlegend=row == 1, legendgroup=strategy),
                row=row,
                col=1,
            )
    figure.add_hline(y=1.0, line_dash="dash", line_color="green", row=1, col=1)
    figure.update_layout(boxmode="group", template="plotly_white", height=900)
    _write(figure, path)


def draw_timeline(reports: Sequence[CycleReport], rates: Sequence[float], path: Path) -> None:
    """Throughput against the target, slots below it, a line at every decision."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    minutes = [report.cycle.time_s / 60 for report in reports]
    sources = [
        [metrics for metrics in report.cycle.observation.operators.values() if metrics.arrival_rate is not None]
        for report in reports
    ]
    figure: Any = make_subplots(rows=2, cols=1, shared_xaxes=True, subplot_titles=["records/s", "slots"])
    read = [sum(metrics.input_rate or 0.0 for metrics in found) for found in sources]
    came = [sum(metrics.arrival_rate or 0.0 for metrics in found) for found in sources]
    slots = [report.cycle.target.slots for report in reports]
    figure.add_trace(Scatter(x=minutes, y=read, name="throughput", line_color="#4477aa"), row=1, col=1)
    figure.add_trace(Scatter(x=minutes, y=came, name="target", line_color="#228833"), row=1, col=1)
    figure.add_trace(Scatter(x=minutes, y=slots, name="slots", line_color="#aa3377", line_shape="hv"), row=2, col=1)
    for report in reports:
        if reconfigured(report):
            figure.add_vline(x=report.cycle.time_s / 60, line_dash="dot", line_color="grey")
    figure.update_layout(template="plotly_white", height=600)
    figure.update_yaxes(range=[0, 1.4 * max(rates)], row=1, col=1)
    _write(figure, path)


def _write(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.write_html(path, include_plotlyjs="cdn")
