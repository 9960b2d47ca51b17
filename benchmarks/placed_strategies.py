"""CAPS against Spark's own scheduling, random, evenly, Flink's default and ODRP: what each lets real workers sustain.

    python -m benchmarks.placed_strategies [--queries q5,q8,inference] [--runs 5] [--out placed-strategies.json]

Three workers of four slots with a third of a core each, no pacing, a backlog at the sources, bounded topics in between
(CAPSys, figure 7). Unit costs are measured first, with every operator alone on a worker. All strategies have the same
queries: plans change live, in an order drawn by chance. Spark's own scheduling (`spark`) takes its turn among them,
with no plan and Spark's own locality wait; its state begins with one partition on every worker, as Spark itself begins
on idle workers, and stays there. `random` puts every instance into any free slot. `settled` is CAPS' plan again, window
after window, with nothing moved in between. Every measured plan is kept in --out, and another call goes on with the
next one.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.measuring import Results
from benchmarks.placed_load import (
    Window,
    backlog,
    engine_on,
    measured,
    placed_by,
    plan_cost,
    request_for,
    unpaced,
    wait_for_batch,
    warm_up,
)
from benchmarks.placed_workers import Workers, workers
from sluice.control.engine import wait
from sluice.files import replace_file
from sluice.lab.bench.statistics import estimate
from sluice.model import Placement, Target
from sluice.placement import placers
from sluice.placement.planner import UnitCosts
from sluice.spark.internals import context_of
from sluice.spark.pipeline.engine import SparkEngine

WORKERS, SLOTS, CPUS = 3, 4, 1 / 3
WARM_UP_S = 60.0
"""Without limits on CPU: executors compile what they run often, and are several times as fast after it."""
SPARKS_OWN, RANDOM = "spark", "random"
PLACED = ("caps", "default", "evenly", RANDOM, "odrp")
SETTLED = "settled"
IN_TURN = (*PLACED, SPARKS_OWN)
SHOWN = (*IN_TURN, SETTLED)
SEEDED = ("default", "evenly")
LOCALITY_WAIT = "spark.locality.wait"


@dataclass(frozen=True)
class Studied:
    """A query of CAPSys 6.1 as it runs here, with instances of its operators in proportion to their work."""

    query: str
    watched: str
    """The operator that limits it."""
    parallelism: Mapping[str, int]
    settings: Mapping[str, Any] = field(default_factory=dict)
    events_per_block: int = 10_000
    blocks_ahead: int = 4
    """So many fit into a topic: enough for batches in which the work is what counts, and for several in a window."""
    repeated: bool = False


STUDIED = {
    one.query: one
    for one in (
        Studied(
            "q5",
            "sliding_window",
            {"bids_source": 2, "sliding_window": 3, "sink": 1},
            {"window_s": 60.0, "slide_s": 20.0},
            blocks_ahead=20,
        ),
        Studied("q8", "window_join", {"auction_source": 2, "person_source": 1, "window_join": 3, "sink": 1}),
        Studied(
            "inference",
            "infer",
            {"source": 1, "decode": 2, "resize": 2, "infer": 2, "sink": 1},
            events_per_block=400,
            repeated=True,
        ),
    )
}


def spread(names: list[str], parallelism: Mapping[str, int]) -> Target:
    """One instance after the other, to one worker after the other."""
    tasks: dict[str, dict[str, int]] = {name: {} for name in names}
    instances = [operator for operator, count in parallelism.items() for _ in range(count)]
    for at, operator in enumerate(instances):
        held = tasks[names[at % len(names)]]
        held[operator] = held.get(operator, 0) + 1
    return Target(parallelism=dict(parallelism), placement=Placement(tasks=tasks))


def at_random(names: list[str], parallelism: Mapping[str, int], seed: int) -> Target:
    """Every instance in any slot that is free."""
    places = random.Random(seed).sample([name for name in names for _ in range(SLOTS)], sum(parallelism.values()))
    tasks: dict[str, dict[str, int]] = {name: {} for name in names}
    instances = [operator for operator, count in parallelism.items() for _ in range(count)]
    for operator, name in zip(instances, places, strict=True):
        tasks[name][operator] = tasks[name].get(operator, 0) + 1
    return Target(parallelism=dict(parallelism), placement=Placement(tasks=tasks))


def profiled(engine: SparkEngine, names: list[str], parallelism: Mapping[str, int], seconds: float) -> dict[str, Any]:
    """Unit costs and rates: every operator alone on a worker for a while, CPU of the worker's whole process tree."""
    units, rates = {}, {}
    for name in parallelism:
        others = [operator for operator in parallelism if operator != name]
        tasks = {names[0]: {name: 1}, names[1]: dict.fromkeys(others[::2], 1), names[2]: dict.fromkeys(others[1::2], 1)}
        alone = Target(parallelism=dict.fromkeys(parallelism, 1), placement=Placement(tasks=tasks))
        found = measured(engine, alone, [name], settle_s=2.0, measure_s=seconds).seen
        metrics = found.operators[name]
        if not metrics.input_rate:
            continue
        units[name] = UnitCosts(
            cpu=(found.workers[names[0]].cpu or 0.0) / metrics.input_rate,
            io=(metrics.io_rate or 0.0) / metrics.input_rate,
            net=(metrics.net_rate or 0.0) / metrics.input_rate,
        )
        rates[name] = metrics.input_rate
    return {"units": units, "rates": rates}


def figures(found: Window, cost: Any = None) -> dict[str, Any]:
    return {
        "records_per_s": round(found.records_per_s, 1),
        "rates": {name: round(one.input_rate or 0.0) for name, one in found.seen.operators.items()},
        "backpressure": max((one.backpressure or 0.0 for one in found.seen.operators.values()), default=None),
        "followed": found.followed,
        "cores": found.cores,
        "cost": None if cost is None else [round(float(one), 3) for one in cost],
    }


def measure_query(
    there: Workers, one: Studied, runs: int, settle_s: float, measure_s: float, results: Results
) -> Iterator[tuple[str, Any]]:
    job = unpaced(one.query, state_partitions=3, **one.settings)
    feed = backlog(job, events_per_block=one.events_per_block, repeated=one.repeated)
    bound = one.blocks_ahead * one.events_per_block
    engine = engine_on(there, job.pipeline, feed, there.folder / one.query, bound=bound)
    there.free()
    try:
        begun = spread(there.names, one.parallelism)
        warm_up(engine, begun, there.names, WARM_UP_S)
        there.limit()
        wait(engine, 4.0)
        if f"{one.query} profile" not in results:
            costs = profiled(engine, there.names, one.parallelism, measure_s)
            units = {name: unit.model_dump() for name, unit in costs["units"].items()}
            yield f"{one.query} profile", {"units": units, "rates": costs["rates"]}
        known = results.found[f"{one.query} profile"]
        units = {name: UnitCosts(**unit) for name, unit in known["units"].items()}
        rates = flow_rates(engine, known["rates"])
        request = request_for(engine, one.parallelism, units, rates)
        for run in range(runs):
            # each finds the state where the one before left it: no strategy is always after the same one
            for name in random.Random(run).sample(IN_TURN, len(IN_TURN)):
                case = f"{one.query} {name} {run}"
                if case in results:
                    continue
                if name == SPARKS_OWN:
                    yield case, figures(measured_unplaced(engine, begun, one.watched, settle_s, measure_s))
                    continue
                if name == RANDOM:
                    target = at_random(there.names, one.parallelism, run)
                else:
                    target = placed_by(placers.create(name, {"seed": run} if name in SEEDED else {}), request)
                found = measured(engine, target, [one.watched], settle_s=settle_s, measure_s=measure_s)
                yield case, figures(found, plan_cost(engine, target, units, rates))
        yield from measure_settled(engine, one, placed_by(placers.create("caps"), request), runs, measure_s, results)
    finally:
        engine.stop()


def measure_settled(
    engine: SparkEngine, one: Studied, target: Target, runs: int, measure_s: float, results: Results
) -> Iterator[tuple[str, Any]]:
    measured(engine, target, [one.watched], settle_s=measure_s, measure_s=measure_s)
    for case in (f"{one.query} {SETTLED} {run}" for run in range(runs)):
        if case not in results:
            yield case, figures(measured(engine, None, [one.watched], settle_s=0.0, measure_s=measure_s))


def flow_rates(engine: SparkEngine, alone: Mapping[str, float]) -> dict[str, float]:
    """Every operator's rate when the query flows as a whole: those seen in the last window."""
    seen = engine.observe()
    return {name: seen.operators[name].input_rate or alone.get(name, 0.0) for name in engine.graph.names}


def measured_unplaced(engine: SparkEngine, begun: Target, watched: str, settle_s: float, measure_s: float) -> Window:
    """No task has a place to follow; state is left where `begun` has it."""
    engine.reconcile(begun)
    for _ in range(2):
        wait_for_batch(engine, watched)
    with unplaced(engine):
        for _ in range(2):
            wait_for_batch(engine, watched)
        found = measured(engine, None, [watched], settle_s=settle_s, measure_s=measure_s)
    return replace(found, followed=None)


@contextmanager
def unplaced(engine: SparkEngine) -> Iterator[None]:
    """Spark schedules as it likes, with its default locality wait; afterwards the plans are in force again.

    Assumes that no plan changes meanwhile: then the engine does not write one.
    """
    files = [engine.runtime.folders.places(name) for name in engine.runtime.queries]
    plans = [file.read_bytes() for file in files]
    conf = context_of(engine.spark).conf()
    wait_before = conf.get(LOCALITY_WAIT)
    try:
        conf.set(LOCALITY_WAIT, "3s")
        for file in files:
            replace_file(file, json.dumps({"places": [], "workers": []}).encode())
        yield
    finally:
        conf.set(LOCALITY_WAIT, wait_before)
        for file, plan in zip(files, plans, strict=True):
            replace_file(file, plan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default=",".join(STUDIED))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settle", type=float, default=4.0, help="seconds after every change that are left out")
    parser.add_argument("--seconds", type=float, default=6.0, help="measured at every plan")
    parser.add_argument("--out", type=Path, default=Path("placed-strategies.json"))
    given = parser.parse_args()
    results = Results(given.out)
    queries = given.queries.split(",")
    missing = [
        query
        for query in queries
        if any(f"{query} {name} {run}" not in results for name in SHOWN for run in range(given.runs))
    ]
    if missing:
        with workers("strategies", count=WORKERS, slots=SLOTS, cpus=CPUS) as there:
            for query in missing:
                measuring = measure_query(there, STUDIED[query], given.runs, given.settle, given.seconds, results)
                for case, found in measuring:
                    results.add(case, found)
    for query in queries:
        show(query, results)


def show(query: str, results: Results) -> None:
    for name in SHOWN:
        rates = [row["records_per_s"] for case, row in results.found.items() if case.startswith(f"{query} {name} ")]
        if not rates:
            continue
        found = estimate(rates)
        reach = "" if found.low is None else f", {found.low:.0f} to {found.high:.0f}"
        print(f"{query:<10}{name:<9}{found.mean:>9.0f} records/s{reach} ({len(rates)} runs)")


if __name__ == "__main__":
    main()
