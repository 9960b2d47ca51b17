"""Does CAPS' cost predict throughput on real workers? All plans of a small query, measured without pacing.

    python -m benchmarks.placed_contention [--seconds 5] [--rounds 3] [--out placed-contention.json]

Three workers of three slots with a third of a core each. A heavy operator and a light one of three instances each are
put on them in every distinct way, one live change after the other, with a backlog to read. The rate of the slower
one is set beside the plan's cost (CAPSys, figures 2 and 3). Loads of the operators are those observed under the even
plan. Measured plans are kept in --out, and another call goes on with the next one.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.stats import spearmanr

from benchmarks.measuring import Results
from benchmarks.placed_load import engine_on, measured, plan_cost, warm_up
from benchmarks.placed_workers import Workers, workers
from sluice import Pipeline
from sluice.control.engine import wait
from sluice.lab.backlog import BacklogFeed
from sluice.lab.spark_placing import HOT, ROOM, hot_worker
from sluice.model import Placement, Target
from sluice.placement.planner import observed_unit_costs

WORKERS, SLOTS, CPUS, INSTANCES = 3, 3, 0.33, 3
HEAVY_HASHES, LIGHT_HASHES = 24, 6
BLOCK = 20_000
Plan = tuple[tuple[int, int], ...]
"""Heavy and light instances of every worker."""


def pipeline() -> Pipeline:
    def hashed(count: int) -> str:
        return " || ".join(f"sha2(cast(id + {k} as string), 512)" for k in range(count))

    job = Pipeline("contention")
    job.source("numbers", "id BIGINT")
    job.operator("heavy", lambda numbers: numbers.where(f"length({hashed(HEAVY_HASHES)}) > 0"), "numbers")
    job.operator("light", lambda heavy: heavy.where(f"length({hashed(LIGHT_HASHES)}) > 0"), "heavy")
    job.sink("out", "light")
    return job


def block(number: int) -> Mapping[str, pa.Table]:
    return {"numbers": pa.table({"id": np.arange(number * BLOCK, (number + 1) * BLOCK)})}


def plans() -> list[Plan]:
    """Every distinct way: workers are alike, so a plan is a multiset of columns."""
    columns = [(a, b) for a in range(INSTANCES + 1) for b in range(INSTANCES + 1) if a + b <= SLOTS]
    return [
        found
        for found in itertools.combinations_with_replacement(columns, WORKERS)
        if sum(a for a, _ in found) == sum(b for _, b in found) == INSTANCES
    ]


def target(names: list[str], plan: Plan) -> Target:
    tasks = {
        name: {operator: count for operator, count in (("heavy", heavy), ("light", light)) if count}
        for name, (heavy, light) in zip(names, plan, strict=True)
    }
    return Target(parallelism={"heavy": INSTANCES, "light": INSTANCES}, placement=Placement(tasks=tasks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="measured at every plan")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("placed-contention.json"))
    given = parser.parse_args()
    results = Results(given.out)
    left = [f"{number} {plan}" for number in range(given.rounds) for plan in plans()]
    if any(case not in results for case in left):
        with workers("contention", count=WORKERS, slots=SLOTS, cpus=CPUS) as there:
            for case, figures in measure_all(there, given.rounds, given.seconds, results):
                results.add(case, figures)
    show(results)


def measure_all(
    there: Workers, rounds: int, seconds: float, results: Results
) -> Iterator[tuple[str, dict[str, object]]]:
    engine = engine_on(
        there, pipeline(), BacklogFeed(block, {"numbers": "heavy"}, 4 * BLOCK), there.folder / "work", bound=4 * BLOCK
    )
    try:
        even = target(there.names, ((1, 1),) * WORKERS)
        warm_up(engine, even, there.names, 9.0)
        there.limit()
        wait(engine, 5.0)
        first = measured(engine, even, ("heavy", "light"), settle_s=2.0, measure_s=seconds).seen
        units = observed_unit_costs(first)
        rates = {name: one.input_rate or 0.0 for name, one in first.operators.items()}
        for number in range(rounds):
            for plan in random.Random(number).sample(plans(), len(plans())):
                case = f"{number} {plan}"
                if case in results:
                    continue
                wanted = target(there.names, plan)
                found = measured(engine, wanted, ("heavy", "light"), settle_s=seconds / 2, measure_s=seconds)
                cpu = plan_cost(engine, wanted, units, rates)[0]
                yield (
                    case,
                    {
                        "cost": round(float(cpu), 3),
                        "records_per_s": round(found.records_per_s),
                        "followed": found.followed,
                        "loads": found.loads,
                        "hot": hot_worker(found.seen),
                    },
                )
    finally:
        engine.stop()


def show(results: Results) -> None:
    rows = list(results.found.values())
    rates, costs = [row["records_per_s"] for row in rows], [row["cost"] for row in rows]
    number = len(plans())
    for first in range(0, len(rows), number):
        found = spearmanr(costs[first : first + number], rates[first : first + number]).statistic
        print(f"round {first // number}: rank correlation {found:.2f}")
    by_plan: dict[str, list[tuple[float, float]]] = {}
    for case, row in results.found.items():
        by_plan.setdefault(case.partition(" ")[2], []).append((row["cost"], row["records_per_s"]))
    means = np.array([np.mean(found, axis=0) for found in by_plan.values()])
    print(f"means of plans: rank correlation {spearmanr(means[:, 0], means[:, 1]).statistic:.2f}")
    print(f"{len(rows)} measurements of {len(plans())} plans, {min(rates)} to {max(rates)} records/s")
    print(f"rank correlation of cost and throughput {spearmanr(costs, rates).statistic:.2f}")
    by_cost = {cost: float(np.mean([r for r, c in zip(rates, costs, strict=True) if c == cost])) for cost in set(costs)}
    print("mean throughput by cost:", {cost: round(by_cost[cost]) for cost in sorted(by_cost)})
    print(f"best over worst: {max(by_cost.values()) / min(by_cost.values()):.2f}")
    hot = [(row["hot"] is not None, row["cost"]) for row in rows]
    print(f"hot (from {HOT}, others up to {ROOM}), by cost:", sorted({(c, h) for h, c in hot}))


if __name__ == "__main__":
    main()
