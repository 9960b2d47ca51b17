"""Does CAPS' cost predict throughput on real workers? All plans of a small query, measured without pacing.

    python -m benchmarks.placed_contention [--seconds 12] [--rounds 1] [--out placed-contention.json]

Three workers of four slots with a real CPU limit each. A heavy operator of four instances is put on them in every
distinct way, one live change after the other, with a backlog to read. Its throughput is set beside the plan's cost
(CAPSys, figures 2 and 3). Measured plans are kept in --out, and another call goes on with the next one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from scipy.stats import spearmanr

from sluice import Pipeline
from sluice.control.engine import wait
from sluice.model import Placement, Target
from sluice.placement import PlacementRequest, TaskLoad
from sluice.placement.problem import build
from sluice.spark.cluster import lifecycle, standalone
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.topic.interface import open_log

WORKERS, SLOTS, CPUS, INSTANCES = 3, 4, 0.6, 4
RECORDS, APPEND = 20_000_000, 2_000_000
HEAVY = "heavy"


class Backlog:
    """More records than can be read while it lasts."""

    def start(self, topics: Mapping[str, str]) -> None:
        topic = open_log(topics["numbers"])
        for number in range(RECORDS // APPEND):
            ids = np.arange(number * APPEND, (number + 1) * APPEND)
            topic.append(pa.table({"id": ids}, schema=topic.schema), producer="bench", batch_id=number)

    def check(self) -> None:
        pass

    def stop(self) -> None:
        pass


def pipeline() -> Pipeline:
    job = Pipeline("contention")
    job.source("numbers", "id BIGINT")
    hashes = " || ".join(f"sha2(cast(id + {k} as string), 512)" for k in range(8))
    job.operator(HEAVY, lambda numbers: numbers.where(f"length({hashes}) < 0"), "numbers")
    job.sink("out", HEAVY)
    return job


def spreads(instances: int, workers: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide instances over equal workers."""
    if workers == 0:
        if instances == 0:
            yield ()
        return
    for first in range(min(instances, most), -1, -1):
        for rest in spreads(instances - first, workers - 1, first):
            yield (first, *rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0, help="measured at every plan")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("placed-contention.json"))
    given = parser.parse_args()
    plans = list(spreads(INSTANCES, WORKERS, SLOTS))
    rows = json.loads(given.out.read_text()) if given.out.exists() else []
    left = [(number, plan) for number in range(given.rounds) for plan in plans]
    left = [one for one in left if list(one) not in [[row["round"], tuple(row["plan"])] for row in rows]]
    if left:
        with TemporaryDirectory(prefix="sluice-contention-") as folder:
            for row in measured(left, given.seconds, Path(folder)):
                rows.append(row)
                given.out.write_text(json.dumps(rows))
                print(row, flush=True)
    rates = [row["records_per_s"] for row in rows]
    found = spearmanr([row["cost"] for row in rows], rates)
    print(f"{len(rows)} measurements; rank correlation of cost and throughput {found.statistic:.2f}")
    print(f"best over worst plan: {max(rates) / min(rates):.2f}")


def measured(left: list[tuple[int, tuple[int, ...]]], seconds: float, folder: Path) -> Iterator[dict[str, object]]:
    state = standalone.up(folder / "cluster", workers=WORKERS, slots=SLOTS, cpus=CPUS)
    engine: SparkEngine | None = None
    try:
        engine = SparkEngine(pipeline(), folder / "work", master=state.master_url, places=True, feed=Backlog())
        names = sorted(state.worker_hosts.values())
        engine.start(target(names, left[0][1]))
        while not engine.runtime.topics["numbers"].consumers()[HEAVY]:
            wait(engine, 0.5)
        for number, plan in left:
            wanted = target(names, plan)
            engine.reconcile(wanted)
            wait(engine, seconds / 2)
            engine.observe()
            began_s = time.monotonic()
            wait(engine, seconds)
            seen = engine.observe()
            assert seen.placement is not None
            yield {
                "round": number,
                "plan": plan,
                "cost": cost(engine, wanted),
                "records_per_s": round(seen.operators[HEAVY].input_rate or 0.0),
                "followed": seen.placement.followed / max(1, seen.placement.placed),
                "seconds": round(time.monotonic() - began_s, 1),
            }
    finally:
        if engine is not None:
            engine.stop()
        lifecycle.down(folder / "cluster")


def target(names: list[str], plan: tuple[int, ...]) -> Target:
    tasks = {name: {HEAVY: count} if count else {} for name, count in zip(names, plan, strict=True)}
    return Target(parallelism={HEAVY: INSTANCES}, placement=Placement(tasks=tasks))


def cost(engine: SparkEngine, wanted: Target) -> float:
    assert engine.cluster is not None
    assert wanted.placement is not None
    request = PlacementRequest(
        graph=engine.graph,
        parallelism=wanted.parallelism,
        cluster=engine.cluster,
        loads={HEAVY: TaskLoad(cpu=1.0)},
    )
    problem = build(request)
    return round(float(problem.costs(problem.counts_of(wanted.placement)).max()), 3)


if __name__ == "__main__":
    main()
