"""From the command to full speed: first output, batches until a backlog is read at full speed, memory of many slots.

python -m benchmarks.spark_first_seconds [--records 40000000] [--slots 24] [--runs 2] [--commands 3]

A count over 100,000 keys, unpaced, over a topic that is full before Spark starts. Times count from the start of this
process, without the time the backlog takes to write. Memory is the proportional set size of all processes, with `slots`
slots of which `parallelism` are used. Later runs read the same backlog in the same JVM, which has compiled by then what
it runs: what is slow only in the first run is the JVM, not the size of batches. The backlog has to last for a few
batches of about two seconds; on a quick machine that is more records than the default.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks.measuring import finished_batches, memory_mb
from sluice import Pipeline
from sluice.errors import SluiceError
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine, task_threads
from sluice.spark.pipeline.query import OperatorQuery
from sluice.spark.session import open_session
from sluice.spark.topic import Topic

KEYS = 100_000
RECORDS_PER_COMMIT = 1_000_000
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.int64()), ("word", pa.string())])
FULL_SPEED = 0.9
KEEPER = "keeps-it-all"


def fill(topic: Topic, records: int) -> None:
    words = pa.array([f"word-{number}" for number in range(100)])
    for number, first in enumerate(range(0, records, RECORDS_PER_COMMIT)):
        ids = np.arange(first, min(first + RECORDS_PER_COMMIT, records))
        columns = [pa.array(ids), pa.array(ids * 7919 % KEYS), words.take(pa.array(ids % 100))]
        topic.append(pa.table(columns, schema=SCHEMA), producer="bench", batch_id=number)


def per_key(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("key").count()


def pipeline(source: Path) -> Pipeline:
    made = Pipeline("counting")
    made.source("numbers", "id BIGINT, key BIGINT, word STRING", topic=str(source))
    made.operator("counting", per_key, "numbers", output_mode="update", state_partitions=2)
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


def steady_rate(batches: list[tuple[int, float]]) -> float:
    """The median of those that begin in the second half of the records; the last one has only what is left."""
    begins = itertools.accumulate((records for records, _ in batches), initial=0)
    half = sum(records for records, _ in batches) / 2
    later = [rate for first, (_, rate) in zip(begins, batches[:-1], strict=False) if first >= half]
    return statistics.median(later or [max(rate for _, rate in batches)])


def report(batches: list[tuple[int, float]]) -> None:
    steady = steady_rate(batches)
    for number, (records, rate) in enumerate(batches):
        print(f"batch {number:3} {records:12,} records {rate:12,.0f} records/s, {rate / steady:.2f} of steady")
    slow = next(number for number, (_, rate) in enumerate(batches) if rate >= FULL_SPEED * steady)
    print(f"batches before {FULL_SPEED:.0%} of steady throughput: {slow} (aim: 3)", flush=True)


def command_s(root: Path) -> float:
    """From the start of the command to its first output."""
    command = [sys.executable, "-c", "from sluice.cli import main; main()", "run", "wordcount", "--engine", "spark"]
    began_s = time.monotonic()
    running = subprocess.Popen([*command, "--spark-set", "keep_output=true", "--root", str(root), "--json"])
    try:
        while not _has_output(root / "topics" / "out"):
            assert running.poll() is None, "the command ended without output"
            time.sleep(0.02)
        return time.monotonic() - began_s
    finally:
        running.terminate()
        running.wait()


def _has_output(topic: Path) -> bool:
    try:
        return Topic.open(topic).end_offset() > 0
    except (OSError, SluiceError):
        return False


def main() -> None:
    began_s = time.monotonic() - age_s()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=40_000_000)
    parser.add_argument("--slots", type=int, default=24)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--commands", type=int, default=0, help="do nothing else")
    arguments = parser.parse_args()
    if arguments.commands:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            for number in range(arguments.commands):
                took_s = command_s(Path(folder) / str(number))
                print(f"first output {took_s:.1f} s after the command (aim: 8)", flush=True)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as closing:
        root = Path(folder)
        filling_s = time.monotonic()
        topic = Topic.create(root / "numbers", SCHEMA)
        topic.register(KEEPER)
        fill(topic, arguments.records)
        began_s += time.monotonic() - filling_s
        counting = pipeline(topic.path)
        spark = closing.enter_context(open_session("first seconds", threads=task_threads(counting, arguments.slots)))
        for number in range(arguments.runs):
            for consumer in topic.consumers().keys() - {KEEPER}:
                topic.unregister(consumer)
            engine = SparkEngine(counting, root / f"run-{number}", slots=arguments.slots, spark=spark)
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
            report(found)
            began_s = time.monotonic()


if __name__ == "__main__":
    main()
