"""Slots and latency over time, as figures 7.1 to 7.21 of the thesis draw them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sluice.lab.bench.cell import Result
from sluice.lab.report.export import COLOURS, save


def draw(runs: Mapping[str, Result], path: Path) -> None:
    """One line per policy: the load above, then slots, then the longest wait of every interval."""
    from matplotlib.figure import Figure

    picture: Any = Figure(figsize=(9, 8), layout="constrained")
    load, slots, latency = picture.subplots(3, 1, sharex=True)
    for colour, (label, result) in zip(COLOURS, runs.items(), strict=False):
        series = result.series
        if series is None:
            continue
        minutes = [time_s / 60 for time_s in series.time_s]
        load.plot(minutes, series.arrival_rate, color="#8a8a8a", linewidth=1)
        slots.step(minutes, series.total_slots, where="post", color=colour, label=label)
        latency.plot(minutes, [float("nan") if wait is None else wait for wait in series.latency_s], color=colour)
    for axis, title in ((load, "records/s"), (slots, "slots"), (latency, "latency (s)")):
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
    slots.legend(fontsize="small")
    latency.set_xlabel("minutes")
    path.parent.mkdir(parents=True, exist_ok=True)
    save(picture, path)
