"""The QEScalor paper's figures 2, 3 and 4 as interactive pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sluice.lab.sizing.day import DayRun
from sluice.learning.sampling import Sample

COLOURS = ("#ccbb44", "#66ccee", "#aa3377", "#ee6677", "#228833", "#997700", "#555555")
QCESA_COLOUR = "#004488"


class CostSoFar(Protocol):
    """What somebody's day has cost, `time_s` after it began."""

    @property
    def time_s(self) -> list[float]: ...

    @property
    def cost(self) -> list[float]: ...

    @property
    def total_cost(self) -> float: ...


def draw_costs(runs: Mapping[str, CostSoFar], path: Path) -> None:
    """Figure 2: what the day has cost so far, QCESA against CBA with every size."""
    from plotly.graph_objects import Scatter

    figure = _panels(["cost so far"])
    for (name, run), colour in zip(runs.items(), (QCESA_COLOUR, *COLOURS), strict=False):
        width = 4 if name == "QCESA" else 2
        label = f"{name} ({run.total_cost:.2f})"
        line = {"color": colour, "width": width}
        figure.add_trace(Scatter(x=_hours(run), y=run.cost, name=label, line=line), row=1, col=1)
    _write(figure, path, "Cost of a day, starting and stopping included", height=550)


def draw_service(runs: Mapping[str, DayRun], path: Path) -> None:
    """Figure 3: (a) load and what the running instances can do, (b) how long records waited."""
    from plotly.graph_objects import Scatter

    figure = _panels(["records/s", "latency, s"])
    for (name, run), colour in zip(runs.items(), (QCESA_COLOUR, *COLOURS), strict=False):
        if name == "QCESA":
            load = Scatter(x=_hours(run), y=run.load, name="load", fill="tozeroy", line={"color": "#bbbbbb"})
            figure.add_trace(load, row=1, col=1)
        line = {"color": colour, "shape": "hv"}
        capacity = Scatter(x=_hours(run), y=run.capacity, name=name, line=line, legendgroup=name)
        waited = Scatter(x=_hours(run), y=run.latency_s, line=line, legendgroup=name, showlegend=False)
        figure.add_trace(capacity, row=1, col=1)
        figure.add_trace(waited, row=2, col=1)
    _write(figure, path, "Performance is never below the load for long", height=750)


def draw_samples(taken: Mapping[str, Sequence[Sample]], every: Mapping[str, Sequence[Sample]], path: Path) -> None:
    """Figure 4: the rate of every size, and the sizes DSA looked at."""
    from plotly.graph_objects import Scatter

    figure = _panels(list(taken), side_by_side=True)
    for column, name in enumerate(taken, start=1):
        for samples, mode, label, colour in (
            (every[name], "lines", "every size", "#bbbbbb"),
            (taken[name], "markers", "sampled by DSA", QCESA_COLOUR),
        ):
            cores = [sample.size.cpu_cores for sample in samples]
            rates = [sample.rate for sample in samples]
            trace = Scatter(x=cores, y=rates, mode=mode, name=label, line={"color": colour}, showlegend=column == 1)
            figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(title="cores")
    _write(figure, path, "Records/s of one instance by its size", height=400, hours=False)


def _panels(titles: list[str], *, side_by_side: bool = False) -> Any:
    from plotly.subplots import make_subplots

    if side_by_side:
        return make_subplots(rows=1, cols=len(titles), subplot_titles=titles)
    return make_subplots(rows=len(titles), cols=1, shared_xaxes=True, subplot_titles=titles)


def _hours(run: CostSoFar) -> list[float]:
    return [time_s / 3600 for time_s in run.time_s]


def _write(figure: Any, path: Path, title: str, *, height: int, hours: bool = True) -> None:
    figure.update_layout(template="plotly_white", title=title, height=height)
    if hours:
        figure.update_xaxes(title="hour of the day", range=[0, 24])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.write_html(path, include_plotlyjs=True)
