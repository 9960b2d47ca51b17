"""Sampling a real operator: what one and two cores make of it, and what the model says about that."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from sluice.errors import BadInputError, SluiceError
from sluice.learning.performance import PerformanceModel
from sluice.learning.sampling import ConvergenceRule, FixedStepSampling
from sluice.model import InstanceSize
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.sampling import SparkSampling

CORES = len(os.sched_getaffinity(0))
RECORDS = pa.table({"key": list(range(2_000)), "text": [f"text {number}" for number in range(2_000)]})


def size(cores, memory_mb=640.0):
    return InstanceSize(name=f"{cores} cores", cpu_cores=cores, memory_mb=memory_mb)


def best_of_passes(target, sizes, convergence, passes):
    """Other processes can only slow an instance down, so its best pass counts; a clear first pass is enough."""
    best = {}
    for _ in range(passes):
        for sample in FixedStepSampling(step=1).sample(target, sizes, convergence):
            best[sample.size] = max(sample, best.get(sample.size, sample), key=lambda found: found.rate)
        if best[sizes[-1]].rate > 1.1 * best[sizes[0]].rate:
            break
    return tuple(best[found] for found in sizes)


def hashing():
    pipeline = Pipeline("hashing")
    events = pipeline.source("events", "key BIGINT, text STRING")

    def digest(events):
        from pyspark.sql import functions as sql

        column = sql.col("text")
        for _ in range(25):
            column = sql.sha2(column, 512)
        return events.select("key", column.alias("digest"))

    pipeline.operator("digest", digest, events)
    return pipeline.operators["digest"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(CORES < 2, reason="needs two cores to compare")
def test_two_cores_are_measured_faster_than_one_and_the_model_says_so(java):
    pytest.importorskip("sklearn")
    target = SparkSampling(hashing(), {"events": RECORDS}, files_per_batch=4)
    convergence = ConvergenceRule(windows=3, tolerance=0.15, max_windows=15)
    best = best_of_passes(target, [size(1), size(2)], convergence, passes=6)
    one, two = best
    assert two.rate > one.rate > 0
    model = PerformanceModel(best)
    assert model.rate(size(2)) > model.rate(size(1))


def test_only_whole_cores_that_exist_can_be_pinned():
    target = SparkSampling(hashing(), {"events": RECORDS})
    for impossible in (size(0.5), size(CORES + 1)):
        with pytest.raises(BadInputError, match="whole cores"):
            next(target.rates(impossible))
    with pytest.raises(BadInputError, match="512 MB"):
        next(target.rates(size(1, memory_mb=100)))


def test_every_input_needs_records():
    with pytest.raises(BadInputError, match="'events'"):
        SparkSampling(hashing(), {})


@pytest.mark.spark
@pytest.mark.slow
def test_an_operator_that_fails_is_told_in_one_line(java):
    pipeline = Pipeline("broken")
    events = pipeline.source("events", "key BIGINT, text STRING")
    pipeline.operator("broken", lambda events: events.select("nothing"), events)
    target = SparkSampling(pipeline.operators["broken"], {"events": RECORDS})
    with pytest.raises(SluiceError, match=r"sampling instance ended.*nothing"):
        next(target.rates(size(1)))
