"""Whether a long run grows: disk, driver memory and the cost of a batch, the last quarter over the second.

python -m benchmarks.spark_soak [--short] [--batches N]

Many small batches through a stateless and a counting operator (fixed keys, so the state itself does not grow); an hour
of one-second triggers is 3600 batches of each. The first quarter is left out: caches fill and code is compiled there.
The final output is trimmed by a consumer that follows it, as a reader outside would. CPU time per batch, of all
processes, is the figure to trust when the machine is busy with other things.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.measuring import SteadyFeed, cpu_s, resident_mb
from sluice import Pipeline
from sluice.control.engine import wait
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.session import open_session

RECORDS_PER_S = 2_000.0
SAMPLES = 40
READER = "outside"


@dataclass(frozen=True)
class SoakSample:
    batch: int
    disk_mb: float
    python_mb: float
    heap_mb: float
    batch_ms: float
    batch_cpu_ms: float


def events(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table({"key": numbers % 1000, "value": numbers})


def pipeline() -> Pipeline:
    made = Pipeline("soak")
    made.source("events", "key BIGINT, value BIGINT")
    made.operator("double", lambda events: events.selectExpr("key", "value * 2 AS value"), "events")
    made.operator("count", lambda double: double.groupBy("key").count(), "double", output_mode="update")
    made.sink("out", "count")
    return made


def disk_mb(root: Path) -> float:
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(folder, name))
            except FileNotFoundError:
                continue
    return total / 2**20


def heap_mb(spark: SparkSession) -> float:
    """What is left after a collection."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="200 batches")
    parser.add_argument("--batches", type=int, default=3600)
    arguments = parser.parse_args()
    batches = 200 if arguments.short else arguments.batches
    spark = open_session("soak", threads=8).spark
    samples: list[SoakSample] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        engine = SparkEngine(
            pipeline(),
            root,
            slots=4,
            spark=spark,
            settings=QuerySettings(trigger_s=0.1),
            feed=SteadyFeed("events", RECORDS_PER_S, events),
        )
        engine.start(Target(parallelism={"double": 2, "count": 2}))
        out = engine.runtime.topics["out"]
        out.register(READER)
        before, before_cpu_s = 0, cpu_s()
        while len(samples) < SAMPLES:
            due = batches * (len(samples) + 1) // SAMPLES
            while (done := (out.last_batch_id("count") or 0)) < due:
                wait(engine, 0.5)
            engine.observe()
            out.acknowledge(READER, out.end_offset())
            query = engine.runtime.queries["count"]._streaming
            assert query is not None
            batch_ms = statistics.median(p.durationMs["triggerExecution"] for p in query.recentProgress[-20:])
            now_cpu_s = cpu_s()
            batch_cpu_ms = (now_cpu_s - before_cpu_s) / (done - before) * 1000
            before, before_cpu_s = done, now_cpu_s
            sample = SoakSample(done, disk_mb(root), resident_mb(os.getpid()), heap_mb(spark), batch_ms, batch_cpu_ms)
            samples.append(sample)
            print(sample, flush=True)
        engine.stop()
    report(samples)
    spark.stop()


def report(samples: Sequence[SoakSample]) -> None:
    quarter = len(samples) // 4
    for name in ("disk_mb", "python_mb", "heap_mb", "batch_ms", "batch_cpu_ms"):
        second, last = (
            statistics.median(getattr(sample, name) for sample in part)
            for part in (samples[quarter : 2 * quarter], samples[-quarter:])
        )
        print(f"{name:12} {second:8.1f} -> {last:8.1f}, ratio {last / second:.2f}")


if __name__ == "__main__":
    main()
