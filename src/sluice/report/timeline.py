"""A run as one picture: arrival rate and throughput, slots, latency, and every scaling action with its reason."""

from __future__ import annotations

import textwrap
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sluice.report.series import RunSeries

MINUTE_S = 60.0


def timeline_figure(series: RunSeries) -> go.Figure:
    figure = make_subplots(
        rows=3,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.06,
        subplot_titles=("records/s", "slots", "latency (s)"),
    )
    minutes = [time_s / MINUTE_S for time_s in series.time_s]
    figure.add_scatter(x=minutes, y=series.arrival_rate, name="arriving", row=1, col=1, line={"color": "#8a8a8a"})
    figure.add_scatter(x=minutes, y=series.throughput, name="read", row=1, col=1, line={"color": "#0b6fa4"})
    for name, counts in series.slots.items():
        figure.add_scatter(x=minutes, y=counts, name=name, stackgroup="slots", line={"shape": "vh"}, row=2, col=1)
    figure.add_scatter(
        x=[time_s / MINUTE_S for time_s in series.latency_time_s],
        y=series.latency_s,
        name="latency",
        row=3,
        col=1,
        line={"color": "#b5462f"},
    )
    at = dict(zip(series.time_s, series.total_slots, strict=True))
    figure.add_scatter(
        x=[rescale.time_s / MINUTE_S for rescale in series.rescales],
        y=[at[rescale.time_s] for rescale in series.rescales],
        name="scaling action",
        mode="markers",
        marker={"symbol": "diamond", "size": 8, "color": "#222222"},
        hovertext=["<br>".join([r.changes, *textwrap.wrap(r.reason, 70)]) for r in series.rescales],
        hoverinfo="text+x",
        row=2,
        col=1,
    )
    figure.update_xaxes(title_text="minutes", row=3, col=1)
    figure.update_yaxes(rangemode="tozero")
    figure.update_layout(title=_title(series), template="plotly_white", hovermode="closest", height=900)
    return figure


def write_timeline(series: RunSeries, path: Path) -> None:
    """One self-contained HTML file."""
    timeline_figure(series).write_html(path, include_plotlyjs=True, full_html=True)


def _title(series: RunSeries) -> str:
    head = series.head
    named = [str(head[key]["name"]) for key in ("pipeline", "workload", "policy") if key in head]
    return " x ".join(named) + (f" on {head['engine']}" if "engine" in head else "")
