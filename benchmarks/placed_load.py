"""What the benchmarks of placement share: queries without pacing, a backlog that never ends, a plan measured.

Slots are real and workers have a share of a core each. Topics between operators are bounded, so that no operator runs
far ahead of the one that limits the query.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.placed_workers import Workers
from sluice import Pipeline
from sluice.control.engine import wait
from sluice.lab.backlog import BacklogFeed
from sluice.lab.pipelines import RunsOnSpark, pipelines
from sluice.lab.spark_placing import worker_load
from sluice.model import Observation, Placement, Target
from sluice.placement import PlacementRequest, Placer
from sluice.placement.planner import UnitCosts, loads_at, without_links
from sluice.placement.problem import build
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.feed import Feed
from sluice.spark.pipeline.folders import last_batches
from sluice.spark.pipeline.job import SparkJob
from sluice.spark.pipeline.query import QuerySettings

EVENTS_PER_BLOCK = 20_000
BLOCK_S = 2.0
START_S = 1_800_000_000.0
LONGEST_BATCH_S = 15.0
BATCHES = 3
"""A window has at least so many."""


def backlog(job: SparkJob, *, events_per_block: int = EVENTS_PER_BLOCK, repeated: bool = False) -> BacklogFeed:
    """Generated records in the proportions of the query; `repeated`: one block every time, where making is dear."""
    total = sum(job.peak_rates.values())
    counts = {source: round(events_per_block * rate / total) for source, rate in job.peak_rates.items()}
    kept: dict[str, pa.Table] = {}

    def make(number: int) -> Mapping[str, pa.Table]:
        if repeated and kept:
            return kept
        for source, count in counts.items():
            generate = job.pipeline.sources[source].generate
            assert generate is not None
            kept[source] = generate(number * count, count, START_S + number * BLOCK_S, 1)
        return dict(kept)

    return BacklogFeed(make, readers(job.pipeline), 12 * events_per_block)


def readers(pipeline: Pipeline) -> dict[str, str]:
    """Source -> the operator that reads it."""
    return {
        source: next(n for n, op in pipeline.operators.items() if source in op.inputs) for source in pipeline.sources
    }


def unpaced(query: str, *, state_partitions: int, **settings: Any) -> SparkJob:
    definition = pipelines.create(query, {**settings, "paced": False})
    assert isinstance(definition, RunsOnSpark), query
    job = definition.spark()
    for name, spec in job.pipeline.operators.items():
        job.pipeline.operators[name] = replace(spec, state_partitions=state_partitions)
    return job


@dataclass(frozen=True)
class Window:
    """What a plan achieved: cores in use by worker, and the share of its slots or cores it uses."""

    records_per_s: float
    followed: float | None
    cores: dict[str, float]
    loads: dict[str, float]
    seen: Observation


def engine_on(
    workers: Workers, pipeline: Pipeline, feed: Feed, root: Path, *, places: bool = True, bound: int = 60_000
) -> SparkEngine:
    return SparkEngine(
        pipeline,
        root,
        spark=workers.spark,
        master=workers.state.master_url,
        places=places,
        capacity={"cpu": workers.state.cpus},
        settings=QuerySettings(trigger_s=0.5, topic_bound_records=bound, keep_output=False),
        feed=feed,
    )


def warm_up(engine: SparkEngine, spread: Target, names: list[str], seconds: float) -> None:
    """Every worker runs every operator for a while: Python processes start and code is compiled before it counts."""
    engine.start(spread)
    wait_for_output(engine)
    for shift in range(1, len(names)):
        turned = {names[(at + shift) % len(names)]: spread.placement.tasks[name] for at, name in enumerate(names)}  # type: ignore[union-attr]
        engine.reconcile(Target(parallelism=spread.parallelism, placement=Placement(tasks=turned)))
        wait(engine, seconds / len(names))


def wait_for_output(engine: SparkEngine, patience_s: float = 120.0) -> None:
    """Until every operator has finished a batch with records."""
    deadline_s = time.monotonic() + patience_s
    queries = engine.runtime.queries.values()
    while not all(any(engine.runtime.topics[t].consumers()[q.name] for t in q.query.inputs) for q in queries):
        assert time.monotonic() < deadline_s, "no batch of every operator"
        wait(engine, 0.5)


def wait_for_batch(engine: SparkEngine, operator: str) -> None:
    """Until one more is finished and its progress has been heard of; not for ever."""
    checkpoint = engine.runtime.folders.checkpoint(operator)
    deadline_s, last = time.monotonic() + LONGEST_BATCH_S, last_batches(checkpoint)[1]
    while time.monotonic() < deadline_s and last_batches(checkpoint)[1] == last:
        time.sleep(0.05)
    wait(engine, 0.2)


def measured(
    engine: SparkEngine, target: Target | None, watched: Collection[str], *, settle_s: float, measure_s: float
) -> Window:
    """Put the plan in force and see what the slowest of some operators reads; null: what Spark does.

    From the end of a batch to the end of another: a batch may be as long as the time that is measured. The one in
    flight began under the plan before, and the first after it loads what state has moved: both are left out. Sources
    read ahead into bounded topics and then wait: their rate says little within seconds.
    """
    slowest = next(iter(watched))
    if target is not None:
        engine.reconcile(target)
        wait_for_batch(engine, slowest)
        wait_for_batch(engine, slowest)
    wait(engine, settle_s)
    wait_for_batch(engine, slowest)
    engine.observe()
    until_s = time.monotonic() + measure_s
    for _ in range(BATCHES):
        wait_for_batch(engine, slowest)
    if until_s > time.monotonic():
        wait(engine, until_s - time.monotonic())
        wait_for_batch(engine, slowest)
    seen = engine.observe()
    placed = seen.placement
    return Window(
        records_per_s=min(seen.operators[name].input_rate or 0.0 for name in watched),
        followed=placed.followed / placed.placed if placed and placed.placed else None,
        cores={name: round(one.cpu or 0.0, 3) for name, one in seen.workers.items()},
        loads={name: round(worker_load(one) or 0.0, 3) for name, one in seen.workers.items()},
        seen=seen,
    )


def plan_cost(engine: SparkEngine, target: Target, units: Mapping[str, UnitCosts], rates: Mapping[str, float]) -> Any:
    """CAPS' costs of a plan (cpu, io, net)."""
    assert target.placement is not None
    problem = build(request_for(engine, target.parallelism, units, rates))
    return problem.costs(problem.counts_of(target.placement))


def request_for(
    engine: SparkEngine, parallelism: Mapping[str, int], units: Mapping[str, UnitCosts], rates: Mapping[str, float]
) -> PlacementRequest:
    assert engine.cluster is not None
    return PlacementRequest(
        graph=engine.graph,
        parallelism=dict(parallelism),
        cluster=engine.cluster,
        loads=loads_at(without_links(units), rates, parallelism),
    )


def placed_by(placer: Placer, request: PlacementRequest) -> Target:
    found = placer.place(request)
    assert found.placement is not None, found.reason
    return Target(parallelism=request.parallelism, placement=found.placement)
