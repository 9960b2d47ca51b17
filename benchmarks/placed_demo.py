"""The pipeline of the demo (WordCount) in one process and on three workers: throughput, and what a rescale costs.

    python -m benchmarks.placed_demo [--seconds 12] [--rounds 2] [--out placed-demo.json]

No pacing, the same parallelism and a backlog in both; the workers are processes of this machine without a limit, so it
shows what distribution costs, not what it gains. A rescale is live; `gap` is the longest time between two batches
of the counter from the rescale until six seconds after, over the mean before it. Finished cases are kept in --out.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measuring import Results
from benchmarks.placed_load import backlog, unpaced, wait_for_output
from benchmarks.placed_workers import workers
from sluice.control.engine import wait
from sluice.lab.spark_placing import SparkPlacement
from sluice.lab.spark_placing import cluster_of as present
from sluice.model import Target
from sluice.placement import placers
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.folders import last_batches
from sluice.spark.pipeline.query import QuerySettings

WORKERS, SLOTS = 3, 4
FIRST = {"source": 1, "splitter": 2, "counter": 2}
OTHER = {**FIRST, "counter": 4}
WATCHED = "counter"
SETTINGS = QuerySettings(trigger_s=0.5, topic_bound_records=1_000_000, keep_output=False)
CASES = ("one process", "three workers", "three workers, caps")


def engine_here(root: Path) -> SparkEngine:
    job = unpaced("wordcount", state_partitions=4)
    return SparkEngine(
        job.pipeline, root, slots=WORKERS * SLOTS, settings=SETTINGS, feed=backlog(job, events_per_block=100_000)
    )


def measure(engine: SparkEngine, seconds: float, *, places: bool) -> dict[str, Any]:
    plan = SparkPlacement(placer=placers.create("caps")).planner(present(engine)) if places else None

    def target(parallelism: dict[str, int]) -> Target:
        if plan is None:
            return Target(parallelism=parallelism)
        return Target(parallelism=parallelism, placement=plan(engine.graph, parallelism, None, None)[0])

    try:
        engine.start(target(FIRST))
        wait_for_output(engine)
        wait(engine, 10.0)
        engine.observe()
        wait(engine, seconds)
        seen = engine.observe()
        gaps = [rescale_gap(engine, target(plan)) for plan in (OTHER, FIRST)]
    finally:
        count = engine.stop()
    return {
        "records_per_s": round(seen.operators["source"].input_rate or 0.0),
        "batch_s": {name: round(one.batch_s or 0.0, 2) for name, one in seen.operators.items()},
        "rescale_gap": [round(gap, 2) for gap in gaps],
        "lost": count.lost,
        "twice": count.duplicated,
    }


def rescale_gap(engine: SparkEngine, target: Target) -> float:
    before = batch_times_s(engine, 6.0)
    began_s = time.monotonic()
    engine.reconcile(target)
    after = [began_s, *batch_times_s(engine, 6.0)]
    usual_s = statistics.mean(b - a for a, b in itertools.pairwise(before))
    return max(b - a for a, b in itertools.pairwise(after)) / usual_s


def batch_times_s(engine: SparkEngine, seconds: float) -> list[float]:
    """When batches of the counter were committed."""
    checkpoint = engine.runtime.folders.checkpoint(WATCHED)
    until_s, last, found = time.monotonic() + seconds, last_batches(checkpoint)[1], []
    while time.monotonic() < until_s:
        now = last_batches(checkpoint)[1]
        if now > last:
            found.append(time.monotonic())
            last = now
        time.sleep(0.02)
    engine.maintain()
    return found


def run(case: str, seconds: float) -> dict[str, Any]:
    if case == CASES[0]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            return measure(engine_here(Path(folder)), seconds, places=False)
    places = case == CASES[2]
    with workers("demo", count=WORKERS, slots=SLOTS, places=places) as there:
        job = unpaced("wordcount", state_partitions=4)
        engine = SparkEngine(
            job.pipeline,
            there.folder / "work",
            spark=there.spark,
            master=there.state.master_url,
            places=places,
            settings=SETTINGS,
            feed=backlog(job, events_per_block=100_000),
        )
        return measure(engine, seconds, places=places)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("placed-demo.json"))
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        Results(given.out).add(given.case, run(given.case.rpartition(" ")[0], given.seconds))
        return
    for case in (f"{case} {number}" for number in range(given.rounds) for case in CASES):
        if case not in Results(given.out):
            # a Spark session of another master needs a process of its own
            command = [sys.executable, "-m", "benchmarks.placed_demo", "--case", case]
            subprocess.run([*command, "--out", str(given.out), "--seconds", str(given.seconds)], check=True)
    found = Results(given.out).found
    for case in CASES[1:]:
        shares = [
            found[f"{case} {number}"]["records_per_s"] / found[f"{CASES[0]} {number}"]["records_per_s"]
            for number in range(given.rounds)
        ]
        print(f"{case}: {[round(one, 2) for one in shares]} of the throughput of one process")


if __name__ == "__main__":
    main()
