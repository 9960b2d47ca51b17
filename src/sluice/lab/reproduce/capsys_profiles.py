"""The profiles published with CAPSys: how even the plans of each strategy are, and what they carry when simulated.

Loads per task, parallelism and edges are the published ones. Not published: rates and what a worker can do. Here every
operator has selectivity 1, and an even cluster uses 85 % of its CPU and of its disk, as in the other experiments.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sluice.lab.reproduce.base import Report, Row, Table, claim, shown
from sluice.lab.reproduce.capsys_jobs import FULL_SHARE, HEADROOM, StudiedQuery
from sluice.lab.reproduce.capsys_runs import Measured, measure, must_place, throughput_rows
from sluice.lab.simulator import Linear, SimulatedOperator
from sluice.model import Cluster
from sluice.placement import PlacementRequest, placers
from sluice.placement.request import Profile, read_profile

WORKERS, SLOTS = 4, 8
RATE = 100_000.0


def compare_profiles(folder: str, strategies: Sequence[str], runs: int, report: Report) -> Table:
    """CAPS against the others, drawn several times; without the profiles the table says so."""
    paths = sorted(Path(folder).glob("*.json")) if folder else []
    rows: list[Row] = []
    for path in paths:
        report(path.stem)
        query, cluster = published(path.stem, read_profile(path))
        wanted = read_profile(path).request(cluster)
        worst: dict[str, list[float]] = {}
        measured: dict[str, list[Measured]] = {}
        for strategy in strategies:
            worst[strategy], measured[strategy], words = _placed(strategy, runs, query, wanted)
            rows.append(shown(f"{path.stem}: {strategy}, cost of cpu / io / net", None, words))
        least = min(min(worst[strategy]) for strategy in strategies if strategy != "caps")
        ours = f"caps {worst['caps'][0]:.3f}, best draw of the others {least:.3f}"
        rows.append(
            claim(f"{path.stem}: caps has the least largest cost", "yes", ours, worst["caps"][0] <= least + 1e-9)
        )
        rows += throughput_rows(path.stem, measured, same_as="figure7")
    if not rows:
        rows.append(
            shown("plans of the published profiles", None, None, note="no profiles: give --set profiles=FOLDER")
        )
    title = f"published profiles on {WORKERS} workers of {SLOTS} slots, {runs} draws of the other strategies"
    notes = ("published: loads per task, tasks, edges; ours: rates, and workers that an even plan fills to 85 %",)
    return Table(name="profiles", title=title, rows=tuple(rows), notes=notes)


def _placed(
    strategy: str, runs: int, query: StudiedQuery, wanted: PlacementRequest
) -> tuple[list[float], list[Measured], str]:
    """Largest cost and measured run of every draw, and the mean costs in words."""
    costs, measured = [], []
    for seed in range(runs):
        placed = must_place(placers.create(strategy, {} if strategy == "caps" else {"seed": seed}), wanted)
        assert placed.costs is not None
        assert placed.placement is not None
        costs.append((placed.costs.cpu, placed.costs.io, placed.costs.net))
        measured.append(measure(query, wanted.cluster, RATE, placed.placement, seed))
    words = " / ".join(f"{mean:.2f}" for mean in np.mean(costs, axis=0))
    return [max(cost) for cost in costs], measured, words


def published(name: str, profile: Profile) -> tuple[StudiedQuery, Cluster]:
    """A query whose tasks have just the loads of the profile at `RATE`, and a cluster they fill to 85 %."""
    targets = {edge.target for edge in profile.edges}
    sources = [op for op in profile.operators if op.name not in targets]
    emitted = sum(op.parallelism * op.net for op in sources)
    shares = {op.name: op.parallelism * op.net / emitted for op in sources}
    bare = StudiedQuery(
        name=name,
        operators=tuple(SimulatedOperator(name=op.name, capacity=Linear(RATE)) for op in profile.operators),
        edges=profile.edges,
        shares=shares,
    )
    rates = bare.input_rates(RATE)
    operators = tuple(
        SimulatedOperator(
            name=op.name,
            capacity=Linear(HEADROOM * rates[op.name] / op.parallelism),
            cpu_per_record=op.cpu * op.parallelism / rates[op.name],
            io_bytes_per_record=op.io * op.parallelism / rates[op.name],
            net_bytes_per_record=op.net * op.parallelism / rates[op.name],
        )
        for op in profile.operators
    )
    total = {d: sum(getattr(op, d) * op.parallelism for op in profile.operators) for d in ("cpu", "io")}
    cluster = Cluster.uniform(
        WORKERS, SLOTS, **{d: load / WORKERS / FULL_SHARE if load else None for d, load in total.items()}
    )
    return StudiedQuery(name=name, operators=operators, edges=profile.edges, shares=shares), cluster
