"""The six queries of CAPSys 6.1 on three workers: every task placed, plans changed while records flow, output exact.

    python -m benchmarks.placed_queries [--events 6000] [--changes 3] [QUERY ...]

Q1-sliding to Q6-session are q5, q8, inference, q3, q6 and q11. All share one application. Parallelism and placement are
drawn at random several times; output is compared, row by row, with that of another engine. Finished queries are
kept in --out, and another call goes on with the next one.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Results
from benchmarks.placed_followed import job_of
from benchmarks.placed_workers import Workers, workers
from sluice.control.engine import wait
from sluice.model import Placement, Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.query import QuerySettings
from sluice.testing.answers.check import append_block, finish_query
from sluice.testing.answers.reference import ANSWERS, inputs

QUERIES = ("q5", "q8", "inference", "q3", "q6", "q11")
WORKERS, SLOTS = 3, 6
BLOCKS = 24


def random_target(names: list[str], operators: tuple[str, ...], random: np.random.Generator) -> Target:
    """One or two instances each, as many of them on a worker as chance has it but no more than its slots."""
    tasks: dict[str, dict[str, int]] = {name: {} for name in names}
    parallelism = {operator: int(random.integers(1, 3)) for operator in operators}
    for operator, count in parallelism.items():
        for _ in range(count):
            free = [name for name in names if sum(tasks[name].values()) < SLOTS]
            held = tasks[free[int(random.integers(len(free)))]]
            held[operator] = held.get(operator, 0) + 1
    return Target(parallelism=parallelism, placement=Placement(tasks=tasks))


def measure(there: Workers, query: str, events: int, changes: int) -> dict[str, Any]:
    began_s = time.monotonic()
    answer = next(one for one in ANSWERS if one.query == query)
    job, root = job_of(answer, paced=False), there.folder / query
    blocks = inputs(job, events, blocks=BLOCKS)
    engine = SparkEngine(
        job.pipeline,
        root,
        spark=there.spark,
        master=there.state.master_url,
        places=True,
        settings=QuerySettings(trigger_s=0.5),
    )
    random = np.random.default_rng(1)
    engine.start(random_target(there.names, engine.graph.names, random))
    moved = 0
    for number, block in enumerate(blocks):
        append_block(engine, block, number)
        wait(engine, 0.3)
        if number % (BLOCKS // changes) == BLOCKS // changes - 1:
            wait(engine, 3.0)
            moved += "state partitions" in (
                engine.reconcile(random_target(there.names, engine.graph.names, random)).detail or ""
            )
    seen = engine.observe().placement
    assert seen is not None
    rows = finish_query(answer, job, engine, root, blocks)
    return {
        "rows_equal": rows,
        "tasks": seen.placed,
        "followed": seen.followed,
        "changes_that_moved_state": moved,
        "seconds": round(time.monotonic() - began_s),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", default=list(QUERIES), metavar="QUERY")
    parser.add_argument("--events", type=int, default=6000)
    parser.add_argument("--changes", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("placed-queries.json"))
    given = parser.parse_args()
    results = Results(given.out)
    left = [query for query in given.queries or QUERIES if query not in results]
    if left:
        with workers("six queries", count=WORKERS, slots=SLOTS) as there:
            for query in left:
                results.add(query, measure(there, query, given.events, given.changes))


if __name__ == "__main__":
    main()
