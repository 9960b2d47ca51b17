"""What a batch costs beside its records: the time of each step of small batches, ours and Spark's.

python -m benchmarks.spark_batch_costs [--batches 30]

A stateless operator and a count over 1,000 keys get 200 records with every trigger, so nearly all of a batch is what it
costs without records. Spark's own steps come from its progress events; `topic:` are calls of the JVM to the planner in
the driver's Python process, which are parts of the steps above them; `listener` runs beside the next batch. Medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.measuring import SteadyFeed, finished_batches
from sluice import Pipeline
from sluice.control.engine import wait
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.ledgers import Ledgers
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.session import open_session
from sluice.spark.topic.planner import TopicPlanner

KEYS = 1_000
RECORDS_PER_S = 400.0
TRIGGER_S = 0.5
WARM_UP_BATCHES = 20
STEPS = {
    "latestOffset": "where it ends (topic: next)",
    "walCommit": "offsets logged",
    "getBatch": "batch made",
    "queryPlanning": "planned (topic: plan)",
    "addBatch": "run: tasks, state, output (topic: commit)",
    "commitOffsets": "batch logged as done",
    "triggerExecution": "all",
}


class Spans:
    """How long calls took, by what they were for."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self._lock = threading.Lock()

    def around(self, owner: Any, method: str, name: Callable[..., str]) -> None:
        """Time a method of a class from now on."""
        inner = getattr(owner, method)

        def timed(*given: Any, **named: Any) -> Any:
            began_s = time.perf_counter()
            try:
                return inner(*given, **named)
            finally:
                with self._lock:
                    self.seconds[name(*given)].append(time.perf_counter() - began_s)

        setattr(owner, method, timed)

    def median_ms(self, name: str) -> float:
        found = self.seconds.get(name, [])
        return statistics.median(found) * 1000 if found else 0.0


def numbers(first: int, count: int) -> pa.Table:
    values = np.arange(first, first + count)
    return pa.table({"key": values % KEYS, "value": values})


def pipeline(stateful: bool) -> Pipeline:
    made = Pipeline("costs")
    made.source("events", "key BIGINT, value BIGINT")

    def doubled(events: DataFrame) -> DataFrame:
        return events.selectExpr("key", "value * 2 AS value")

    def counted(events: DataFrame) -> DataFrame:
        return events.groupBy("key").count()

    if stateful:
        made.operator("op", counted, "events", output_mode="update", state_partitions=2)
    else:
        made.operator("op", doubled, "events")
    made.sink("out", "op")
    return made


def measure(spark: SparkSession, root: Path, spans: Spans, *, stateful: bool, batches: int) -> None:
    engine = SparkEngine(
        pipeline(stateful),
        root,
        slots=4,
        spark=spark,
        settings=QuerySettings(trigger_s=TRIGGER_S),
        feed=SteadyFeed("events", RECORDS_PER_S, numbers),
    )
    engine.start(Target(parallelism={"op": 2}))
    query = engine.runtime.queries["op"]
    while len(_full(query)) < WARM_UP_BATCHES:
        wait(engine, TRIGGER_S)
    spans.seconds.clear()
    first = len(_full(query))
    while len(_full(query)) < first + batches:
        wait(engine, TRIGGER_S)
    found = _full(query)[first:]
    engine.stop()
    report("count over keys, 2 state partitions" if stateful else "stateless", found, spans)


def _full(query: Any) -> list[Mapping[str, Any]]:
    return [batch for batch in finished_batches(query) if batch.numInputRows]


def report(kind: str, found: list[Any], spans: Spans) -> None:
    records = statistics.median(batch.numInputRows for batch in found)
    print(f"{kind}: {len(found)} batches of {records:.0f} records")
    for step, meaning in STEPS.items():
        took_ms = statistics.median(batch.durationMs.get(step, 0) for batch in found)
        print(f"  {step:18} {took_ms:6.1f} ms  {meaning}")
    for state in found[-1].stateOperators:
        print(f"  state commit       {state.commitTimeMs / max(1, state.numShufflePartitions):6.1f} ms  per partition")
    for name in ("topic: next", "topic: plan", "topic: newest", "topic: commit", "listener"):
        print(f"  {name:18} {spans.median_ms(name):6.1f} ms  in Python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=30)
    batches = parser.parse_args().batches
    spans = Spans()
    spans.around(TopicPlanner, "_answer", lambda _, asked: f"topic: {asked['call']}")
    spans.around(Ledgers, "_on_progress", lambda *_: "listener")
    spark = open_session("costs", threads=4).spark
    for stateful in (False, True):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            measure(spark, Path(folder), spans, stateful=stateful, batches=batches)
    spark.stop()


if __name__ == "__main__":
    main()
