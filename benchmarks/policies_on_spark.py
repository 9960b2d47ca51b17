"""Policies compared on Spark itself: queries 1, 5 and 11 with paced slots that bend as the papers' curves do.

python -m benchmarks.policies_on_spark [--queries q1] [--policies sluice,ds2] [--loads cosine] [--seeds 3]
    [--within 420] [--side-by-side 2] [--show]

Time is compressed: twenty minutes of load go by in a run of one, and what a policy is set to in seconds (windows,
delays) is divided by the same factor. All runs of a call share a Spark session, and a short run that is not counted
warms it up. Every finished run is kept in `--out`, no run is begun after `--within` seconds, and the same command goes
on; one seed of everything comes first, policies in an order by chance. Topics are bounded, or nothing is ever
backpressured. Costs are slots over those of `sluice` in the same case, for on Spark no planner knows the capacities.

Paced slots sleep most of the time, so several runs fit on a machine, each in a process with a JVM of its own: a row
says how many there were (`side_by_side`) and how busy that made the machine (`machine_busy`).
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Results, end_on_sigterm, machine_cpu_s
from benchmarks.policy_cases import DrawnLoad
from sluice.files import replace_file
from sluice.journal.records import Choice
from sluice.lab.bench.cell import run_cell, shared_session, warm_up
from sluice.lab.bench.grid import Cell, grid
from sluice.lab.bench.statistics import Estimate, estimate
from sluice.protocol import OBJECTIVE, policies

OURS = "sluice"
LOAD_MINUTES = 20
INTERVAL_S, OBJECTIVE_S, SLOTS, BOUND_RECORDS = 5.0, 10.0, 24, 100_000
PIPELINES = ("q1", "q5:slide_s=3,window_s=15", "q11")
WORKLOADS = (
    f"cosine:minutes={LOAD_MINUTES},period_minutes={LOAD_MINUTES}",
    "square:phase_minutes=5,phases=4,low=0.4",
    "permutation:levels=5,rounds=1,level_minutes=4",
)
POLICIES = (
    OURS,
    "ds2",
    "conttune",
    "flink",
    "hpa-varga:lag_rate_threshold=100",
    "dhalion:lag_rate_threshold=100,lag_close_to_zero=4000",
    "hpa-cpu",
    "dragster",
)
TRACE = Path("build/policies-on-spark-trace.csv")
MEASURED = Path("benchmarks/measured/policies-on-spark.json")
SHOWN = {"slots": "avg_slots", "p95 s": "p95_latency_s", "late": "slo_violation_ratio", "actions": "rescales"}
Row = Mapping[str, Any]


def compressed(text: str, speedup: float) -> Choice:
    """A policy whose own times go by as fast as the load's; none is shorter than a window."""
    choice = Choice.parse_text(text)
    times = {
        field.name: max(INTERVAL_S, field.default / speedup)
        for field in fields(policies.get(choice.name))  # type: ignore[arg-type]
        if field.name.endswith("_s") and field.name != OBJECTIVE and isinstance(field.default, float) and field.default
    }
    return Choice(
        name=choice.name, settings={**{name: f"{value:g}" for name, value in times.items()}, **choice.settings}
    )


def trace(path: Path) -> str:
    """A drawn day with noise that lasts and bursts, as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    loads = DrawnLoad(pattern="trace", seed=20).loads(np.random.default_rng(20))[:: 140 // LOAD_MINUTES][:LOAD_MINUTES]
    rows = [f"{minute},{round(float(load), 6)}" for minute, load in enumerate(loads)]
    replace_file(path, "\n".join(["minute,rate", *rows, ""]).encode())
    return f"trace:path={path},peak=1"


def cells(
    queries: Sequence[str], loads: Sequence[str], names: Sequence[str], *, seeds: int, duration_s: float
) -> list[Cell]:
    """Seed by seed, case by case."""
    workloads = [Choice.parse_text(text) for text in (*WORKLOADS, trace(TRACE))]
    compared = [compressed(text, LOAD_MINUTES * 60 / duration_s) for text in POLICIES]
    named = grid(
        [query for query in map(Choice.parse_text, PIPELINES) if query.name in queries],
        [load for load in workloads if load.name in loads],
        [policy for policy in compared if policy.name in names],
        range(seeds),
        engine="spark",
        duration_s=duration_s,
        interval_s=INTERVAL_S,
        slo_s=OBJECTIVE_S,
        guards={"max_slots": SLOTS, "cooldown_s": INTERVAL_S},
        spark={"topic_bound_records": BOUND_RECORDS},
    )
    cases = list(dict.fromkeys(cell.case_key for cell in named))
    by_chance = {id(cell): random.Random(cell.key).random() for cell in named}
    return sorted(named, key=lambda cell: (cell.seed, cases.index(cell.case_key), by_chance[id(cell)]))


def measure(missing: Sequence[Cell], results: Results, within_s: float, *, side_by_side: int) -> None:
    deadline_s = time.monotonic() + within_s
    with shared_session(missing):
        if missing:
            warm_up(missing[0])
        for cell in missing:
            if time.monotonic() > deadline_s:
                break
            began_s, used_s = time.monotonic(), machine_cpu_s()
            result = run_cell(cell)
            busy = (machine_cpu_s() - used_s) / (time.monotonic() - began_s) / (os.cpu_count() or 1)
            row = {"policy": cell.policy.name, "went_wrong": list(result.problems)}
            results.add(cell.key, {**result.row, **row, "side_by_side": side_by_side, "machine_busy": round(busy, 2)})


def measure_side_by_side(count: int) -> None:
    """This command in as many processes, each with its part of what is missing."""
    command = [sys.executable, "-m", "benchmarks.policies_on_spark", *sys.argv[1:], "--part"]
    running = [subprocess.Popen([*command, str(number)]) for number in range(count)]
    try:
        codes = [process.wait() for process in running]
    finally:
        for process in running:
            process.terminate()
    if any(codes):
        raise SystemExit(f"exit codes {codes}")


def shown(found: Estimate) -> str:
    if found.mean is None:
        return "-"
    return f"{found.mean:.3g}" if found.low is None else f"{found.mean:.3g} [{found.low:.3g}, {found.high:.3g}]"


def show(rows: Sequence[Row]) -> None:
    """Per query, per load and over all, with 95 % intervals over the runs; the ratio only where ours ran as well."""
    ours = {(row["pipeline"], row["workload"], row["seed"]): row["avg_slots"] for row in rows if row["policy"] == OURS}
    parts = [("all", rows)]
    for column in ("pipeline", "workload"):
        parts += [
            (name, [row for row in rows if row[column] == name]) for name in dict.fromkeys(r[column] for r in rows)
        ]
    for title, part in parts:
        print(f"\n{title}\n| policy | runs | slots to {OURS}'s | {' | '.join(SHOWN)} |\n|{'---|' * (3 + len(SHOWN))}")
        for policy in dict.fromkeys(row["policy"] for row in part):
            own = [row for row in part if row["policy"] == policy]
            cases = [(row["avg_slots"], ours.get((row["pipeline"], row["workload"], row["seed"]))) for row in own]
            cost = estimate(slots / least for slots, least in cases if least)
            figures = [shown(estimate(row[metric] for row in own)) for metric in SHOWN.values()]
            print(f"| {policy} | {len(own)} | {shown(cost)} | {' | '.join(figures)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default=",".join(Choice.parse_text(text).name for text in POLICIES))
    parser.add_argument("--queries", default="q1,q5,q11")
    parser.add_argument("--loads", default="cosine,square,permutation,trace")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=60.0, help="seconds per run")
    parser.add_argument("--within", type=float, default=420.0, help="seconds after which no run is begun")
    parser.add_argument("--show", action="store_true", help="run nothing: what there is so far")
    parser.add_argument("--side-by-side", type=int, default=1, help="so many runs at a time")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=MEASURED)
    options = parser.parse_args()
    end_on_sigterm()
    results = Results(options.out)
    planned = cells(
        options.queries.split(","),
        options.loads.split(","),
        options.policies.split(","),
        seeds=options.seeds,
        duration_s=options.duration,
    )
    missing = [cell for cell in planned if cell.key not in results]
    side_by_side = min(options.side_by_side, len(missing))
    if options.part is not None:
        measure(missing[options.part :: side_by_side], results, options.within, side_by_side=side_by_side)
        return
    if not options.show and side_by_side > 1:
        measure_side_by_side(side_by_side)
        results = Results(options.out)
    elif not options.show:
        measure(missing, results, options.within, side_by_side=1)
    done = [results.found[cell.key] for cell in planned if cell.key in results]
    print(f"{len(done)} of {len(planned)} runs")
    show(done)


if __name__ == "__main__":
    main()
