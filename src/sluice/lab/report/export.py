"""Tables as CSV and pictures as PNG or SVG, for papers and documents."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.errors import missing_extra
from sluice.lab.bench.statistics import METRICS, GroupScore
from sluice.lab.report.content import Content, Shown
from sluice.lab.report.figures import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8a8a8a", "#b5462f", "#4d7c0f"),
)
MARKERS = "osD^PX*hpv"
LATENCY = "avg_latency_s"


def write_csv(content: Content, folder: Path) -> list[Path]:
    """`runs.csv` (one row per run), `scores.csv` (mean and interval), `comparisons.csv`, `decisions.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    scores = [
        {**_case(group), "metric": metric, **group.estimates[metric].to_data()}
        for group in (*content.overall, *content.groups)
        for metric in METRICS
    ]
    comparisons = [
        {**_case(found), "baseline": found.baseline, "metric": found.metric, **found.difference.to_data()}
        | {"p_value": found.p_value, "wilcoxon_p": found.wilcoxon_p}
        for found in content.comparisons
    ]
    decisions = [
        {**_case(run), "seed": run.seed, **action.to_data()} for run in content.runs for action in run.series.actions
    ]
    tables = {"runs": content.rows, "scores": scores, "comparisons": comparisons, "decisions": decisions}
    return [_write(folder / f"{name}.csv", rows) for name, rows in tables.items() if rows]


def write_pictures(content: Content, folder: Path, suffix: str = "png") -> list[Path]:
    """One pareto plot per pipeline and workload (and one over all), one time line per run kept."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    cases: dict[str, list[GroupScore]] = {}
    for group in (*content.overall, *content.groups):
        cases.setdefault(file_name(group.engine, group.pipeline, group.workload), []).append(group)
    for name, groups in cases.items():
        written.append(save(pareto_figure(groups), folder / f"pareto-{name}.{suffix}"))
    for run in content.runs:
        name = file_name(run.engine, run.pipeline, run.workload, run.policy, str(run.seed))
        written.append(save(timeline_figure(run), folder / f"timeline-{name}.{suffix}"))
    return written


def pareto_figure(groups: Sequence[GroupScore], *, latency: str = LATENCY) -> Figure:
    figure = blank(7.0, 4.5)
    axes = figure.add_subplot()
    for number, group in enumerate(groups):
        x, y = group.estimates["avg_slots"], group.estimates[latency]
        if x.mean is None or y.mean is None:
            continue
        axes.errorbar(
            [x.mean],
            [y.mean],
            xerr=None if x.low is None else [x.mean - x.low],
            yerr=None if y.low is None else [y.mean - y.low],
            fmt=MARKERS[number % len(MARKERS)],
            color=COLOURS[number % len(COLOURS)],
            label=group.policy,
            capsize=2,
            markersize=7,
        )
    axes.set_xlabel("slots (mean)")
    axes.set_ylabel("latency (s), mean")
    # latencies differ by orders of magnitude; below one second they are all the same
    axes.set_yscale("symlog", linthresh=1.0)
    axes.yaxis.set_major_formatter(lambda value, _: plain(value))
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def timeline_figure(run: Shown) -> Figure:
    figure = blank(8.0, 7.0)
    rates, slots, latency = figure.subplots(3, 1, sharex=True)
    minutes = [time_s / 60 for time_s in run.series.time_s]
    rates.plot(minutes, run.series.arrival_rate, color="#8a8a8a", linestyle=":", label="arriving")
    rates.plot(minutes, run.series.throughput, color=COLOURS[0], label="read")
    rates.set_ylabel("records/s")
    rates.yaxis.set_major_formatter(lambda value, _: plain(value))
    slots.stackplot(
        minutes, list(run.series.slots.values()), labels=list(run.series.slots), colors=COLOURS[1:], step="pre"
    )
    acted = [action.time_s / 60 for action in run.series.actions]
    at = dict(zip(minutes, run.series.total_slots, strict=True))
    slots.plot(acted, [at[minute] for minute in acted], "D", color="#1c2430", markersize=3, label="decision")
    slots.set_ylabel("slots")
    latency.plot(minutes, [float("nan") if s is None else s for s in run.series.latency_s], color="#b5462f")
    if run.slo_s is not None:
        latency.axhline(run.slo_s, color="#8a8a8a", linestyle="--", linewidth=1)
    latency.set_ylabel("latency (s)")
    latency.set_xlabel("minutes")
    for axes in (rates, slots, latency):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    rates.legend(fontsize=8)
    slots.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    rates.set_title(f"{run.policy} on {run.pipeline} under {run.workload}, seed {run.seed}", fontsize=10)
    return figure


def save(figure: Figure, path: Path) -> Path:
    # a date or a random id in the file would make every new run of the command a change
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, bbox_inches="tight", dpi=110, metadata=metadata)
    return path


def blank(width: float, height: float) -> Figure:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("a picture", "matplotlib", "lab") from error
    matplotlib.rcParams["svg.hashsalt"] = "sluice"
    return Figure(figsize=(width, height))


def _case(thing: Any) -> dict[str, str]:
    return {name: getattr(thing, name) for name in ("engine", "pipeline", "workload", "policy")}


def file_name(*parts: str) -> str:
    return "-".join("".join(c if c.isalnum() or c in "._=" else "_" for c in part) for part in parts)


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
