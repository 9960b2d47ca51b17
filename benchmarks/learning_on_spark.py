"""Do the learning policies find the optimum on Spark, on a curve that bends and under a load that changes?

python -m benchmarks.learning_on_spark [--policies conttune,ds2] [--seeds 3] [--within 420] [--side-by-side 5] [--show]

WordCount with paced slots. Splitter and counter bend by Amdahl's law, p / (1 + a (p - 1)) times the capacity of one,
with a = 0.06: six slots do the work of 4.6. Three levels of load come in an order by the seed, and come again in the
same order. Topics are bounded. The optimum of a level is the fewest slots per operator that carry it by the curve at
95 % of their pace, which is what paced slots reach; at this peak three per cent more or less changes none of them. What
a level ended with is read from the run's time line at the level's last decision. How runs are measured, and several at
a time: `cells_on_spark.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells_on_spark import Row, measure_missing, measuring_options
from benchmarks.measuring import Results
from sluice.files import replace_file
from sluice.journal.records import Choice
from sluice.lab.bench.cell import Result
from sluice.lab.bench.grid import Cell, grid
from sluice.lab.pipelines import pipelines
from sluice.lab.report.learned import learned_tables
from sluice.lab.reproduce.conttune_runs import METHODS
from sluice.lab.series import Series
from sluice.lab.spark_run import spark_job
from sluice.lab.workloads import workloads
from sluice.spark.pipeline.specs import OperatorSpec

CONTENTION, LARGEST, SLOTS = 0.06, 12, 30
PEAK_LINES_PER_S, WORDS_PER_LINE = 82_500, 4
LEVELS, ROUNDS, INTERVAL_S, OBJECTIVE_S, BOUND_RECORDS = 3, 2, 5.0, 10.0, 20_000
REACHED = 0.95
"""Of its pace, by a paced slot."""
POLICIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "conttune": METHODS["ours, alpha 3"],
    "conttune-paper": METHODS["ContTune 3"],
    "dragster-saddle": ("dragster", {}),
    "dragster-gradient": ("dragster", {"method": "gradient"}),
    "ds2": METHODS["DS2"],
}
CURVE = Path("build/learning-on-spark-curve.json")
RUNS = Path("build/learning-on-spark")
MEASURED = Path("benchmarks/measured/learning-on-spark.json")


def curve(path: Path) -> str:
    capacity = {str(p): round(1000 * p / (1 + CONTENTION * (p - 1)), 3) for p in range(1, SLOTS + 1)}
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps({"capacity": capacity}).encode())
    return str(path)


def cells(names: Sequence[str], *, seeds: int, duration_s: float) -> list[Cell]:
    """One seed of everything first."""
    job = {"curve": curve(CURVE), "peak_rate": PEAK_LINES_PER_S, "words_per_line": WORDS_PER_LINE, "spark_scale": 0.01}
    levels = {"levels": LEVELS, "rounds": ROUNDS, "level_minutes": 1}
    found = grid(
        [Choice(name="wordcount", settings=job)],
        [Choice(name="permutation", settings=levels)],
        [Choice(name=name, settings=dict(settings)) for name, settings in (POLICIES[one] for one in names)],
        range(seeds),
        engine="spark",
        duration_s=duration_s,
        interval_s=INTERVAL_S,
        slo_s=OBJECTIVE_S,
        guards={"max_slots": SLOTS, "max_parallelism": LARGEST},
        spark={"slots": SLOTS, "topic_bound_records": BOUND_RECORDS},
    )
    return sorted(found, key=lambda cell: cell.seed)


def described(cell: Cell, result: Result) -> Row:
    replace_file(RUNS / f"{cell.key}.json", result.to_json().encode())
    assert result.series is not None
    label = next(
        label
        for label, (name, settings) in POLICIES.items()
        if (name, dict(settings)) == (cell.policy.name, cell.policy.settings)
    )
    row = result.row
    return {
        "policy": label,
        "seed": cell.seed,
        "levels": levels_of(cell, result.series),
        **{name: row[name] for name in ("avg_slots", "rescales", "p95_latency_s", "slo_violation_ratio")},
        **{name: row[name] for name in ("lost_records", "duplicated_records")},
        "went_wrong": list(result.problems),
        "duration_s": cell.duration_s,
    }


def levels_of(cell: Cell, series: Series) -> list[Row]:
    """Level by level: its load, its optimum, what it ended with, and how that came."""
    assert cell.duration_s is not None
    loads = workloads.create(cell.workload.name, cell.workload.settings).loads(
        np.random.Generator(np.random.PCG64(cell.seed))
    )
    level_s = cell.duration_s / loads.size
    found: list[Row] = []
    for number, load in enumerate(loads.tolist()):
        began_s, ended_s = number * level_s, (number + 1) * level_s
        last = max(place for place, time_s in enumerate(series.time_s) if time_s <= ended_s + INTERVAL_S / 2)
        times = [mark.time_s for mark in series.actions if began_s < mark.time_s - INTERVAL_S / 2 <= ended_s]
        ended = {name: counts[last] for name, counts in series.slots.items()}
        needed = optimum(cell, load, REACHED)
        bare = optimum(cell, load, 1.0)
        found.append(
            {
                "load": round(load, 4),
                "again": load in loads[:number],
                "optimum": needed,
                "ended": ended,
                "carries": all(ended[name] >= count for name, count in bare.items()),
                "actions": len(times),
                "settled_s": round(max(times) - began_s, 1) if times else 0.0,
            }
        )
    return found


def optimum(cell: Cell, load: float, reached: float) -> dict[str, int]:
    """The fewest slots of every operator that carry a load by the curve, each of them at a part of its pace."""
    pipeline = pipelines.create(cell.pipeline.name, cell.pipeline.settings)
    operators = spark_job(cell.spec()).pipeline.operators
    flow, found = load * pipeline.peak_rate * cell.pipeline.settings["spark_scale"], {}
    for operator in pipeline.simulated().operators:
        found[operator.name] = _fewest(operators[operator.name], flow / reached)
        flow *= operator.selectivity
    return found


def _fewest(operator: OperatorSpec, rate: float) -> int:
    return next(slots for slots in range(1, SLOTS + 1) if slots * (operator.slot_rate_at(slots) or 0.0) >= rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--duration", type=float, default=300.0, help="seconds per run")
    parser.add_argument("--out", type=Path, default=MEASURED)
    measuring_options(parser)
    options = parser.parse_args()
    results = Results(options.out)
    planned = cells(options.policies.split(","), seeds=options.seeds, duration_s=options.duration)
    if not measure_missing("benchmarks.learning_on_spark", planned, results, options, described):
        return
    done = [results.found[cell.key] for cell in planned if cell.key in results]
    print(f"{len(done)} of {len(planned)} runs\n")
    print("\n\n".join(learned_tables(done)))


if __name__ == "__main__":
    main()
