"""As many batches as a real Spark does in some minutes with attach: whether the driver's memory grows.

python -m benchmarks.attach_long [--seconds 300]

A standalone cluster with one executor, a small stateful query without a trigger interval, a decision every second.
Memory is what is left after a collection, of the Python driver and of its JVM's heap; the first quarter is left out,
because caches fill there. `python -m benchmarks.attach_day` drives a whole day without Spark.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import sluice
from benchmarks.measuring import resident_mb
from sluice.testing.step_load.job import DRAINING, local_cluster, session

SAMPLES = 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    seconds: float = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        with local_cluster(root / "cluster", workers=1, slots=2) as cluster:
            spark = session(cluster.master_url, **DRAINING, **{"spark.sql.streaming.numRecentProgressUpdates": "10"})
            events = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
            counts = events.selectExpr("value % 50 AS key").groupBy("key").count()
            query = counts.writeStream.format("noop").outputMode("update").queryName("counts")
            attached = sluice.attach(spark, max_executors=2, interval=1, journal=root / "journal.jsonl")
            running = query.option("checkpointLocation", str(root / "checkpoint")).start()
            samples: list[tuple[float, float]] = []
            for _ in range(SAMPLES):
                time.sleep(seconds / SAMPLES)
                samples.append(_memory(spark))
            last = running.lastProgress
            done = 0 if last is None else int(last.batchId)
            attached.detach()
            running.stop()
            spark.stop()
    print(f"{done} batches in {seconds:g} s; attach failed: {attached.failure!r}")
    for name, values in zip(("Python, MB resident", "JVM, MB of heap"), zip(*samples, strict=True), strict=True):
        quarters = [statistics.median(values[at : at + SAMPLES // 4]) for at in range(0, SAMPLES, SAMPLES // 4)]
        print(f"{name}: {', '.join(f'{one:.1f}' for one in quarters)} in the quarters of the run")
    sys.exit(1 if attached.failure else 0)


def _memory(spark: object) -> tuple[float, float]:
    jvm = spark._jvm  # type: ignore[attr-defined]
    gc.collect()
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return resident_mb(os.getpid()), (runtime.totalMemory() - runtime.freeMemory()) / 2**20


if __name__ == "__main__":
    main()
