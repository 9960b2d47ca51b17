"""Measures a pipeline's operators on Spark, one at a time, each with a backlog, at several parallelisms.

They run in this process or, on a cluster, each alone on a worker (`profiling_place`).

An operator's input is what the operators above it make of generated records, computed at once and without streaming, so
that a fast operator behind a slow one finds enough to do as well. Alone, all CPU time that is used is its own. Where a
backlog would take too many records (behind a window that emits a handful), capacity is estimated: the slot rate times
the share of theirs that the measured operators reached.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.control.engine import wait
from sluice.errors import BadInputError, SluiceError
from sluice.lab.backlog import BacklogFeed, repeated
from sluice.lab.datasets import StoredDataset, compute, records_read
from sluice.lab.profiling_place import ProfilingPlace
from sluice.lab.simulator import CapacityTable
from sluice.model import Edge
from sluice.model.costs import OperatorCosts
from sluice.placement.request import Profile, ProfiledOperator
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.job import SparkJob
from sluice.spark.pipeline.specs import OperatorSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sluice.spark.pipeline.engine import SparkEngine

SAMPLE_EVENTS = 50_000
MOST_EVENTS = 3_000_000
RECORDS_PER_APPEND = 250_000
MOST_WAITING = 1_000_000
"""Records that wait at most for an operator that is measured: several seconds of reading."""
UNPACED_RATE = 100_000.0
"""Records/s of a slot that is not paced, to size its backlog: more than such a slot does."""
SPARE = 1.3
WINDOWS = 3
"""A measurement consists of so many, those without a backlog left out."""
MOST_ACCUMULATING = 4
STEADY_GROWTH = 1.1
"""State has accumulated when it grows by less than this from one window to the next."""
FIRST_BATCH_TIMEOUT_S = 120.0
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class MeasurementPlan:
    """How long and at which parallelisms. `settle_s` after every change is left out."""

    parallelisms: tuple[int, ...] = (1, 2, 4)
    settle_s: float = 5.0
    measure_s: float = 12.0
    seed: int = 0
    accumulates: bool = False
    """Whether state is to reach its size before anything is measured."""
    unpaced_rate: float = UNPACED_RATE
    """Records/s of a slot that is not paced, as far as its backlog is concerned."""

    def __post_init__(self) -> None:
        if not self.parallelisms or min(self.parallelisms) < 1:
            raise BadInputError(f"parallelism must be at least 1, got {list(self.parallelisms)}")
        for name in ("settle_s", "measure_s"):
            if not getattr(self, name) > 0:
                raise BadInputError(f"{name} must be above 0, got {getattr(self, name):g}")

    def records_needed(self, spec: OperatorSpec) -> float:
        slot_seconds = sum(self.parallelisms) * (self.settle_s + self.measure_s)
        slot_seconds += MOST_ACCUMULATING * self.settle_s if self.accumulates else 0.0
        return SPARE * (spec.slot_rate or self.unpaced_rate) * slot_seconds


@dataclass(frozen=True)
class OperatorMeasurement:
    """What one operator did with a backlog."""

    capacity: dict[int, float]
    cpu_s_per_record: float | None
    io_bytes_per_record: float
    state_bytes_per_record: float


def profile_job(
    name: str, job: SparkJob, spark: SparkSession, root: Path, how: MeasurementPlan, place: ProfilingPlace, say: Say
) -> Profile:
    """The profile of a pipeline at its peak rates. Every operator is measured once, in the order records flow."""
    sample = compute(job, spark, root / "sample", events=SAMPLE_EVENTS, seed=how.seed)
    seen: dict[str, OperatorMeasurement | None] = {}
    for spec in (job.pipeline.operators[found] for found in job.pipeline.topology.order):
        share = records_read(spec, sample) / SAMPLE_EVENTS
        events = how.records_needed(spec) / share if share else math.inf
        if events > MOST_EVENTS:
            say(f"{spec.name}: reads too few records for a backlog, its capacity will be estimated")
            seen[spec.name] = None
            continue
        folder = root / spec.name
        datasets = compute(job, spark, folder / "records", events=math.ceil(events), seed=how.seed)
        seen[spec.name] = _measure(spec, datasets, folder, how, place, say)
    return _profile(name, job, sample, seen, how)


def _measure(
    spec: OperatorSpec,
    datasets: Mapping[str, StoredDataset],
    root: Path,
    how: MeasurementPlan,
    place: ProfilingPlace,
    say: Say,
) -> OperatorMeasurement:
    alone = Pipeline(f"profile-{spec.name}")
    for read in spec.inputs:
        alone.source(read, datasets[read].schema)
    alone.operators[spec.name] = spec
    alone.sink("out", spec.name)
    engine = place.engine(alone, root / "run", max(how.parallelisms), _feed(spec, datasets))
    engine.start(place.target(engine, spec.name, how.parallelisms[0]))
    try:
        _wait_for_first_batch(engine, spec)
        if how.accumulates and engine.runtime.queries[spec.name].query.stateful:
            _accumulate(engine, spec, how)
        return _measure_each(engine, spec, how, place, say)
    finally:
        engine.stop()


def _feed(spec: OperatorSpec, datasets: Mapping[str, StoredDataset]) -> BacklogFeed:
    """Everything the operator reads; one that is faster than was thought reads it again."""
    times = {read: spec.watermarks[read][0] for read in spec.inputs if read in spec.watermarks}
    tables = {read: datasets[read].read(times.get(read)) for read in spec.inputs}
    records = sum(table.num_rows for table in tables.values())
    pieces = max(1, math.ceil(records / RECORDS_PER_APPEND))
    return BacklogFeed(repeated(tables, times, pieces), dict.fromkeys(spec.inputs, spec.name), MOST_WAITING)


def _wait_for_first_batch(engine: SparkEngine, spec: OperatorSpec) -> None:
    """It also starts Python workers and compiles code."""
    deadline_s = time.monotonic() + FIRST_BATCH_TIMEOUT_S
    topics = [engine.runtime.topics[read] for read in spec.inputs]
    while not any(topic.consumers()[spec.name] for topic in topics):
        if time.monotonic() > deadline_s:
            raise SluiceError(f"operator {spec.name!r} finished no batch within {FIRST_BATCH_TIMEOUT_S:g} s")
        wait(engine, 0.2)


def _accumulate(engine: SparkEngine, spec: OperatorSpec, how: MeasurementPlan) -> None:
    """Let state grow until it grows no more, or only slowly: access to a small one costs less."""
    before = 0.0
    for _ in range(MOST_ACCUMULATING):
        wait(engine, how.settle_s)
        state_bytes = engine.observe().operators[spec.name].state_bytes
        if not state_bytes or state_bytes < STEADY_GROWTH * before:
            return
        before = state_bytes


def _measure_each(
    engine: SparkEngine, spec: OperatorSpec, how: MeasurementPlan, place: ProfilingPlace, say: Say
) -> OperatorMeasurement:
    capacity: dict[int, float] = {}
    total = Spent()
    for parallelism in how.parallelisms:
        engine.reconcile(place.target(engine, spec.name, parallelism))
        wait(engine, how.settle_s)
        engine.observe()
        spent = _with_backlog(engine, spec, how, place)
        if not spent.records:
            raise SluiceError(
                f"operator {spec.name!r} with parallelism {parallelism}: no backlog left after {how.measure_s:.0f} s; "
                f"measure for a shorter time"
            )
        capacity[parallelism] = spent.records / spent.elapsed_s
        total = total.plus(spent)
        say(f"{spec.name} with {parallelism}: {capacity[parallelism]:,.0f} records/s")
    return OperatorMeasurement(
        capacity=capacity,
        cpu_s_per_record=total.cpu_s / total.records if total.cpu_s else None,
        io_bytes_per_record=total.io_bytes / total.records,
        state_bytes_per_record=total.state_bytes / total.records,
    )


@dataclass(frozen=True)
class Spent:
    """What some time with a backlog took; `state_bytes` is the size of the state at its end."""

    elapsed_s: float = 0.0
    records: float = 0.0
    cpu_s: float = 0.0
    io_bytes: float = 0.0
    state_bytes: float = 0.0

    def plus(self, later: Spent) -> Spent:
        return Spent(
            self.elapsed_s + later.elapsed_s,
            self.records + later.records,
            self.cpu_s + later.cpu_s,
            self.io_bytes + later.io_bytes,
            later.state_bytes or self.state_bytes,
        )


def _with_backlog(engine: SparkEngine, spec: OperatorSpec, how: MeasurementPlan, place: ProfilingPlace) -> Spent:
    """Window after window, for as long as there is a backlog."""
    spent = Spent()
    for _ in range(WINDOWS):
        place.begin()
        began_s = time.monotonic()
        wait(engine, how.measure_s / WINDOWS)
        seen = engine.observe()
        elapsed_s, metrics = time.monotonic() - began_s, seen.operators[spec.name]
        if not metrics.input_rate or not metrics.lag:
            break
        spent = spent.plus(
            Spent(
                elapsed_s=elapsed_s,
                records=metrics.input_rate * elapsed_s,
                cpu_s=place.cpu_s(seen, elapsed_s) or 0.0,
                io_bytes=(metrics.io_rate or 0.0) * elapsed_s,
                state_bytes=metrics.state_bytes or 0.0,
            )
        )
    return spent


def _profile(
    name: str,
    job: SparkJob,
    sample: Mapping[str, StoredDataset],
    seen: Mapping[str, OperatorMeasurement | None],
    how: MeasurementPlan,
) -> Profile:
    specs = job.pipeline.operators
    efficiency = _efficiency(specs, seen)
    costs = {found: _costs(specs[found], sample, seen[found], how, efficiency) for found in specs}
    rates = _rates_at_load_1(job, costs)
    topology = job.pipeline.topology
    return Profile(
        operators=tuple(_operator(found, costs[found], rates[found]) for found in specs),
        edges=tuple(Edge(source=above, target=below) for above, below in topology.edges),
        pipeline=name,
        paced=any(spec.slot_rate is not None for spec in specs.values()),
        source_rates={found: rates[found] for found in topology.sources},
    )


def _costs(
    spec: OperatorSpec,
    sample: Mapping[str, StoredDataset],
    found: OperatorMeasurement | None,
    how: MeasurementPlan,
    efficiency: float,
) -> OperatorCosts:
    read, emitted = records_read(spec, sample), sample[spec.name]
    return OperatorCosts(
        capacity=found.capacity
        if found
        else {number: efficiency * (spec.slot_rate_at(number) or UNPACED_RATE) * number for number in how.parallelisms},
        estimated=found is None,
        selectivity=emitted.records / read if read else 0.0,
        cpu_s_per_record=found.cpu_s_per_record if found else None,
        io_bytes_per_record=found.io_bytes_per_record if found else 0.0,
        net_bytes_per_record=emitted.size_bytes / read if read else 0.0,
        state_bytes_per_record=found.state_bytes_per_record if found else 0.0,
    )


def _efficiency(specs: Mapping[str, OperatorSpec], seen: Mapping[str, OperatorMeasurement | None]) -> float:
    """The share of their slots' rates that measured operators reached: what batches cost is much the same for all."""
    reached = [
        rate / (parallelism * (specs[name].slot_rate_at(parallelism) or UNPACED_RATE))
        for name, found in seen.items()
        if found
        for parallelism, rate in found.capacity.items()
    ]
    if not reached:
        raise SluiceError("no operator of this pipeline reads enough records to be measured")
    return sum(reached) / len(reached)


def _rates_at_load_1(job: SparkJob, costs: Mapping[str, OperatorCosts]) -> dict[str, float]:
    """Records/s every operator reads when the sources are at their peak rates."""
    emitted = dict(job.peak_rates)
    rates: dict[str, float] = {}
    for name in job.pipeline.topology.order:
        rates[name] = sum(emitted[read] for read in job.pipeline.operators[name].inputs)
        emitted[name] = rates[name] * costs[name].selectivity
    return rates


def _operator(name: str, costs: OperatorCosts, rate: float) -> ProfiledOperator:
    """With the smallest parallelism that carries the rate, and what one task then asks of its worker."""
    capacity = CapacityTable(costs.capacity)
    parallelism = 1
    while capacity(parallelism) < rate:
        parallelism += 1
    per_task = rate / parallelism
    return ProfiledOperator(
        name=name,
        parallelism=parallelism,
        cpu=per_task * (costs.cpu_s_per_record or 0.0),
        io=per_task * costs.io_bytes_per_record,
        net=per_task * costs.net_bytes_per_record,
        costs=costs,
    )
