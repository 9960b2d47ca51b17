"""Twenty-four paced slots over four operators: time to first output, memory, and each operator's rate over its nominal.

python -m benchmarks.spark_paced_slots [--short]

Every operator has a backlog of its own, so that none waits for the one before it and each can show its full rate. Slots
are paced, not real: this measures what Spark's scheduling and micro-batches take away from so many slots on few cores.
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

from benchmarks.measuring import cpu_s, memory_mb
from sluice import Pipeline
from sluice.control.engine import wait
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.session import open_session
from sluice.spark.topic import Topic

OPERATORS = ("parse", "enrich", "score", "store")
SLOTS_PER_OPERATOR = 6
SLOT_RATE = 1000.0
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.int64()), ("value", pa.float64())])


def add_one(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("id", "key", "value + 1 AS value")


def pipeline() -> Pipeline:
    made = Pipeline("slots")
    made.source("events", "id BIGINT, key BIGINT, value DOUBLE")
    before = "events"
    for name in OPERATORS:
        made.operator(
            name, lambda frame: frame.selectExpr("id", "key", "value + 1 AS value"), before, slot_rate=SLOT_RATE
        )
        before = name
    made.sink("out", before)
    return made


def fill(path: Path, records: int) -> None:
    topic = Topic.create(path, SCHEMA)
    for number, first in enumerate(range(0, records, 50_000)):
        ids = np.arange(first, min(first + 50_000, records))
        table = pa.table([ids, ids % 100, ids / 7], schema=SCHEMA)
        topic.append(table, producer="backlog", batch_id=number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="half a minute instead of two")
    window_s = 30.0 if parser.parse_args().short else 120.0
    nominal = SLOTS_PER_OPERATOR * SLOT_RATE
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        for name in ("events", *OPERATORS[:-1]):
            fill(root / "topics" / name, int(nominal * (window_s + 120)))
        began_s, began_cpu_s = time.monotonic(), cpu_s()
        slots = SLOTS_PER_OPERATOR * len(OPERATORS)
        spark = open_session("slots", threads=slots + 8).spark
        engine = SparkEngine(pipeline(), root, slots=slots, spark=spark)
        engine.start(Target(parallelism=dict.fromkeys(OPERATORS, SLOTS_PER_OPERATOR)))
        out = engine.runtime.topics["out"]
        while out.end_offset() == 0:
            wait(engine, 0.1)
        print(f"first output {time.monotonic() - began_s:.1f} s after the start of Spark (aim: at most 20)")
        print(f"  CPU so far {cpu_s() - began_cpu_s:.1f} s on {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        wait(engine, window_s / 3)
        engine.observe()
        window_cpu_s = cpu_s()
        wait(engine, window_s)
        seen = engine.observe()
        print(f"memory of all processes {memory_mb() / 1024:.2f} GB (aim: less than 4)")
        for name, metrics in seen.operators.items():
            assert metrics.input_rate is not None
            true_rate = float("nan") if metrics.true_input_rate is None else metrics.true_input_rate
            print(
                f"{name:8} {metrics.input_rate:7,.0f} records/s, {metrics.input_rate / nominal:.2f} of nominal "
                f"(aim: at least 0.85); true rate {true_rate / nominal:.2f} of nominal"
            )
        print(f"CPU {(cpu_s() - window_cpu_s) / window_s:.2f} of {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        engine.stop()
        spark.stop()


if __name__ == "__main__":
    main()
