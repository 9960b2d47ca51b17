"""From the command to full speed: first output, batches until a backlog is read at full speed, memory of many slots.

python -m benchmarks.spark_first_seconds [--records 40000000] [--slots 24]

A count over 100,000 keys, unpaced, over a topic that is full before Spark starts. Times count from the start of this
process, without the time the backlog takes to write. Memory is the proportional set size of all processes, with `slots`
slots of which `parallelism` are used.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks.measuring import finished_batches, memory_mb
from sluice import Pipeline
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.query import OperatorQuery
from sluice.spark.topic import Topic

KEYS = 100_000
RECORDS_PER_COMMIT = 1_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.int64()), ("word", pa.string())])
STEADY_BATCHES = 4
"""The last ones but one: that has what is left."""
FULL_SPEED = 0.9


def fill(topic: Topic, records: int) -> None:
    words = pa.array([f"word-{number}" for number in range(100)])
    for number, first in enumerate(range(0, records, RECORDS_PER_COMMIT)):
        ids = np.arange(first, min(first + RECORDS_PER_COMMIT, records))
        columns = [pa.array(ids), pa.array(ids * 7919 % KEYS), words.take(pa.array(ids % 100))]
        topic.append(pa.table(columns, schema=SCHEMA), producer="bench", batch_id=number)


def counting(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("key").count()


def pipeline(source: Path) -> Pipeline:
    made = Pipeline("counting")
    made.source("numbers", "id BIGINT, key BIGINT, word STRING", topic=str(source))
    made.operator(output_mode="update", state_partitions=2)(counting)
    made.sink("out", "counting")
    return made


def rates(query: OperatorQuery) -> list[tuple[int, float]]:
    """Records, and records/s, of every batch that had some."""
    return [
        (batch.numInputRows, batch.numInputRows / batch.durationMs["triggerExecution"] * 1000)
        for batch in finished_batches(query)
        if batch.numInputRows
    ]


def age_s() -> float:
    """How long this process has been there."""
    started = float(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def main() -> None:
    began_s = time.monotonic() - age_s()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=40_000_000)
    parser.add_argument("--slots", type=int, default=24)
    parser.add_argument("--parallelism", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        filling_s = time.monotonic()
        topic = Topic.create(root / "numbers", SCHEMA)
        fill(topic, arguments.records)
        began_s += time.monotonic() - filling_s
        engine = SparkEngine(pipeline(topic.path), root / "run", slots=arguments.slots)
        print(f"session and plan after {time.monotonic() - began_s:5.1f} s", flush=True)
        engine.start(Target(parallelism={"counting": arguments.parallelism}))
        print(f"query started after    {time.monotonic() - began_s:5.1f} s", flush=True)
        out = engine.runtime.topics["out"]
        while not out.end_offset():
            time.sleep(0.02)
        print(f"first output after     {time.monotonic() - began_s:5.1f} s", flush=True)
        while topic.lag_records("counting"):
            engine.maintain()
            time.sleep(engine.tick_s / 4)
        print(f"memory of {arguments.slots} slots: {memory_mb():.0f} MB")
        found = rates(engine.runtime.queries["counting"])
        engine.stop()
    steady = sum(rate for _, rate in found[-STEADY_BATCHES - 1 : -1]) / STEADY_BATCHES
    for number, (records, rate) in enumerate(found):
        print(f"batch {number:3} {records:12,} records {rate:12,.0f} records/s, {rate / steady:.2f} of steady")
    slow = next(number for number, (_, rate) in enumerate(found) if rate >= FULL_SPEED * steady)
    print(f"batches before {FULL_SPEED:.0%} of steady throughput: {slow} (aim: 3)")


if __name__ == "__main__":
    main()
