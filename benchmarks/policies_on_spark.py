"""Policies compared on Spark itself: queries 1, 5 and 11 with paced slots that bend as the papers' curves do.

python -m benchmarks.policies_on_spark [--queries q1] [--policies sluice,ds2] [--loads cosine] [--seeds 3]
    [--within 420] [--side-by-side 2] [--show]

Time is compressed: twenty minutes of load go by in a run of one, and what a policy is set to in seconds (windows,
delays) is divided by the same factor. A short run that is not counted warms a session up; one seed of everything comes
first, policies in an order by chance. Topics are bounded, or nothing is ever backpressured. Costs are slots over those
of `sluice` in the same case, for on Spark no planner knows the capacities. How runs are measured, and several at a
time: `cells_on_spark.py`. On two cores seven runs of query 1 leave each other alone, of the other two four: with six of
query 11 DS2 was late 65 % of the time, with four and alone it was not.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from benchmarks.cells_on_spark import Row, measure_missing, measuring_options, shown
from benchmarks.measuring import Results
from benchmarks.policy_cases import DrawnLoad
from sluice.files import replace_file
from sluice.journal.records import Choice
from sluice.lab.bench.cell import Result
from sluice.lab.bench.grid import Cell, grid
from sluice.lab.bench.statistics import estimate
from sluice.protocol import OBJECTIVE, policies

OURS = "sluice"
LOAD_MINUTES = 20
INTERVAL_S, OBJECTIVE_S, SLOTS = 5.0, 10.0, 24
PIPELINES = {"q1": 100_000, "q5:slide_s=3,window_s=15": 25_000, "q11": 20_000}
"""With the bound of their topics, in records: four and a half seconds of the highest load. What waits behind the source
is in no latency, so a bound that is never reached would hide it."""
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
    named = [
        cell
        for query, bound_records in PIPELINES.items()
        for cell in grid(
            [Choice.parse_text(query)],
            [load for load in workloads if load.name in loads],
            [policy for policy in compared if policy.name in names],
            range(seeds),
            engine="spark",
            duration_s=duration_s,
            interval_s=INTERVAL_S,
            slo_s=OBJECTIVE_S,
            guards={"max_slots": SLOTS, "cooldown_s": INTERVAL_S},
            spark={"topic_bound_records": bound_records},
        )
        if cell.pipeline.name in queries
    ]
    cases = list(dict.fromkeys(cell.case_key for cell in named))
    by_chance = {id(cell): random.Random(cell.key).random() for cell in named}
    return sorted(named, key=lambda cell: (cell.seed, cases.index(cell.case_key), by_chance[id(cell)]))


def described(cell: Cell, result: Result) -> Row:
    return {**result.row, "policy": cell.policy.name, "went_wrong": list(result.problems)}


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
    parser.add_argument("--duration", type=float, default=50.0, help="seconds per run")
    measuring_options(parser)
    parser.add_argument("--out", type=Path, default=MEASURED)
    options = parser.parse_args()
    results = Results(options.out)
    planned = cells(
        options.queries.split(","),
        options.loads.split(","),
        options.policies.split(","),
        seeds=options.seeds,
        duration_s=options.duration,
    )
    if not measure_missing("benchmarks.policies_on_spark", planned, results, options, described):
        return
    done = [results.found[cell.key] for cell in planned if cell.key in results]
    print(f"{len(done)} of {len(planned)} runs")
    show(done)


if __name__ == "__main__":
    main()
