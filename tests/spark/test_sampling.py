"""Sampling a real operator in an instance of its own; how much faster two cores are is for benchmarks."""

from __future__ import annotations

import itertools
import os
from contextlib import closing

import pyarrow as pa
import pytest

from sluice.errors import BadInputError, SluiceError
from sluice.model import InstanceSize
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.sampling import SparkSampling

CORES = len(os.sched_getaffinity(0))
RECORDS = pa.table({"key": list(range(2_000)), "text": [f"text {number}" for number in range(2_000)]})


def size(cores, memory_mb=640.0):
    return InstanceSize(name=f"{cores} cores", cpu_cores=cores, memory_mb=memory_mb)


def hashing(notes=None):
    """An operator that notes, where it is asked to, what the instance it runs in may use."""
    pipeline = Pipeline("hashing")
    events = pipeline.source("events", "key BIGINT, text STRING")

    def digest(events):
        from pyspark.sql import functions as sql

        if notes is not None:
            context = events.sparkSession.sparkContext
            notes.write_text(f"{len(os.sched_getaffinity(0))} cores, {context.defaultParallelism} tasks at once")
        return events.select("key", sql.sha2("text", 512).alias("digest"))

    pipeline.operator("digest", digest, events)
    return pipeline.operators["digest"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("cores", range(1, min(CORES, 2) + 1))
def test_an_instance_has_the_cores_of_its_size_and_shows_a_rate_for_every_window(java, tmp_path, cores):
    target = SparkSampling(hashing(tmp_path / "notes"), {"events": RECORDS}, files_per_batch=4)
    with closing(target.rates(size(cores))) as rates:
        assert all(rate > 0 for rate in itertools.islice(rates, 3))
    assert (tmp_path / "notes").read_text() == f"{cores} cores, {cores} tasks at once"


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
def test_an_operator_that_fails_says_so_in_one_line(java):
    pipeline = Pipeline("broken")
    events = pipeline.source("events", "key BIGINT, text STRING")
    pipeline.operator("broken", lambda events: events.select("nothing"), events)
    target = SparkSampling(pipeline.operators["broken"], {"events": RECORDS})
    with pytest.raises(SluiceError, match=r"sampling instance ended.*nothing"):
        next(target.rates(size(1)))
