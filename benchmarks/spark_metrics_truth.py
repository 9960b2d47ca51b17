"""Paced slots make the truth known: is what the engine measures that truth?

A stateless and a stateful operator in a row, the second one too slow for the load and its input topic bounded. For a
few plans it prints, per operator, the measured true input rate over `parallelism * slot_rate`, the lag beside the one
counted from the topics' offsets, and who is said to be held back.

    python -m benchmarks.spark_metrics_truth            # five plans, two windows of 20 s each
    python -m benchmarks.spark_metrics_truth --short    # two plans
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from sluice import Pipeline
from sluice.control.engine import wait
from sluice.model import Observation, Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.query import QuerySettings

SLOT_RATES = {"parse": 1500.0, "count": 800.0}
PLANS = ((2, 2), (1, 4), (3, 1), (4, 3), (2, 6))
RECORDS = 2_000_000
WINDOW_S = 20.0


def paced_pipeline() -> Pipeline:
    pipeline = Pipeline("truth")
    pipeline.source("numbers", "id BIGINT")

    @pipeline.operator(slot_rate=SLOT_RATES["parse"])
    def parse(numbers: DataFrame) -> DataFrame:
        return numbers.selectExpr("id % 1000 AS key")

    @pipeline.operator(slot_rate=SLOT_RATES["count"], output_mode="update")
    def count(parse: DataFrame) -> DataFrame:
        return parse.groupBy("key").count()

    pipeline.sink("out", count)
    return pipeline


def counted_lag(engine: SparkEngine, operator: str) -> int:
    (topic,) = engine.runtime.queries[operator].query.inputs
    log = engine.runtime.topics[topic]
    return log.end_offset() - log.consumers()[operator]


def report(seen: Observation, lags: dict[str, int]) -> None:
    for name, metrics in seen.operators.items():
        nominal = metrics.parallelism * SLOT_RATES[name]
        rate = "unknown" if metrics.true_input_rate is None else f"{metrics.true_input_rate / nominal:.3f}"
        busy = "unknown" if metrics.busy is None else f"{metrics.busy:.2f}"
        print(
            f"{name:6} {metrics.parallelism:5} {rate:>16} {metrics.lag or 0:10.0f} {lags[name]:11} "
            f"{busy:>7} {metrics.backpressure or 0:12.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two plans instead of five")
    options = parser.parse_args()
    plans = [
        Target(parallelism={"parse": parse, "count": count}) for parse, count in PLANS[: 2 if options.short else 5]
    ]
    with tempfile.TemporaryDirectory(prefix="sluice-", ignore_cleanup_errors=True) as folder:
        settings = QuerySettings(topic_bound_records=20_000)
        engine = SparkEngine(paced_pipeline(), Path(folder), slots=12, settings=settings)
        engine.start(plans[0])
        topic = engine.runtime.topics["numbers"]
        topic.append(pa.table({"id": np.arange(RECORDS)}, schema=topic.schema), producer="benchmark", batch_id=0)
        print("op     slots true / nominal  lag, said  lag, counted   busy  backpressure", flush=True)
        wait(engine, WINDOW_S)
        for plan in plans:
            engine.reconcile(plan)
            wait(engine, WINDOW_S)
            engine.observe()
            wait(engine, WINDOW_S)
            lags = {name: counted_lag(engine, name) for name in SLOT_RATES}
            report(engine.observe(), lags)
        engine.stop()


if __name__ == "__main__":
    main()
