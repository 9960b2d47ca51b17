"""The profiles published with CAPSys: how even the plans of each strategy are, by the paper's own costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sluice.lab.reproduce.base import Report, Row, Table, claim, shown
from sluice.lab.reproduce.capsys_runs import must_place
from sluice.model import Cluster
from sluice.placement import placers
from sluice.placement.request import read_profile

WORKERS, SLOTS = 4, 8


def compare_profiles(folder: str, strategies: Sequence[str], runs: int, report: Report) -> Table:
    """CAPS against the others, drawn several times; without the profiles the table says so."""
    paths = sorted(Path(folder).glob("*.json")) if folder else []
    rows: list[Row] = []
    for path in paths:
        report(path.stem)
        request = read_profile(path).request(Cluster.uniform(WORKERS, SLOTS))
        worst: dict[str, list[float]] = {}
        for strategy in strategies:
            seeds = [{}] if strategy == "caps" else [{"seed": seed} for seed in range(runs)]
            placed = [must_place(placers.create(strategy, settings), request) for settings in seeds]
            costs = [result.costs for result in placed if result.costs is not None]
            worst[strategy] = [max(cost.cpu, cost.io, cost.net) for cost in costs]
            words = " / ".join(
                f"{np.mean([getattr(cost, name) for cost in costs]):.2f}" for name in ("cpu", "io", "net")
            )
            rows.append(shown(f"{path.stem}: {strategy}, cost of cpu / io / net", None, words))
        least = min(min(worst[strategy]) for strategy in strategies if strategy != "caps")
        ours = f"caps {worst['caps'][0]:.3f}, best draw of the others {least:.3f}"
        rows.append(
            claim(f"{path.stem}: caps has the least largest cost", "yes", ours, worst["caps"][0] <= least + 1e-9)
        )
    if not rows:
        rows.append(
            shown("plans of the published profiles", None, None, note="no profiles: give --set profiles=FOLDER")
        )
    title = f"published profiles on {WORKERS} workers of {SLOTS} slots, {runs} draws of the other strategies"
    return Table(name="profiles", title=title, rows=tuple(rows))
