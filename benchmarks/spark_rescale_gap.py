"""How long nothing comes out around a rescale, over the ordinary time between two batches.

python -m benchmarks.spark_rescale_gap [--short]

Records arrive all the time. An operator, stateless or counting 100,000 keys, goes up and down live, then with its state
rewritten. `gap` is the longest time between two commits of its output from the rescale until ten seconds after.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.measuring import SteadyFeed
from sluice import Pipeline
from sluice.control.engine import wait
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.runtime import Rescale
from sluice.spark.session import open_session
from sluice.spark.topic import Topic

KEYS = 100_000
RECORDS_PER_S = 20_000.0
AFTER_S = 10.0
RESCALES: tuple[tuple[Rescale, int], ...] = (("live", 6), ("live", 2), ("repartition", 6), ("repartition", 2))
SCHEMA = "key BIGINT, value BIGINT"


def keyed(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table({"key": numbers * 7919 % KEYS, "value": numbers})


def stateless(events: DataFrame) -> DataFrame:
    return events.selectExpr("key", "value * 2 AS value")


def counting(events: DataFrame) -> DataFrame:
    return events.groupBy("key").count()


def pipeline(stateful: bool) -> Pipeline:
    made = Pipeline("gap")
    made.source("events", SCHEMA)
    if stateful:
        made.operator("op", counting, "events", output_mode="update")
    else:
        made.operator("op", stateless, "events")
    made.sink("out", "op")
    return made


def gaps_s(topic: Topic, since_s: float, until_s: float) -> list[float]:
    """Between commits, the one before `since_s` included; an unfinished gap counts as long as it has lasted."""
    times_s = [commit.arrival_time_s for commit in topic.commits()]
    before = [moment for moment in times_s if moment < since_s][-1:]
    within = [moment for moment in times_s if since_s <= moment <= until_s]
    return [later - earlier for earlier, later in itertools.pairwise([*before, *within, until_s])]


def measure(spark: SparkSession, root: Path, stateful: bool, settle_s: float) -> None:
    engine = SparkEngine(
        pipeline(stateful),
        root,
        slots=8,
        spark=spark,
        feed=SteadyFeed("events", RECORDS_PER_S, keyed),
    )
    engine.start(Target(parallelism={"op": 2}))
    out = engine.runtime.topics["out"]
    assert isinstance(out, Topic)
    kind = "100,000 keys" if stateful else "stateless"
    while out.end_offset() == 0:
        wait(engine, 0.2)
    for how, parallelism in RESCALES:
        settled_s = time.time()
        wait(engine, settle_s)
        ordinary_s = statistics.median(gaps_s(out, settled_s, time.time())[:-1])
        asked_s = time.time()
        result = engine.runtime.rescale({"op": parallelism}, how)["op"]
        took_s = time.time() - asked_s
        wait(engine, AFTER_S)
        longest_s = max(gaps_s(out, asked_s, time.time()))
        aim = " (aim: at most 1.5)" if how == "live" else f"; call took {took_s:.2f} s: {result.detail}"
        print(
            f"{kind:12} {how:11} to {parallelism}: gap {longest_s:.2f} s, ordinary {ordinary_s:.2f} s, "
            f"ratio {longest_s / ordinary_s:.2f}{aim}",
            flush=True,
        )
        assert result.error is None, result.error
    engine.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="less time to settle between rescales")
    settle_s = 15.0 if parser.parse_args().short else 40.0
    spark = open_session("gap", threads=16).spark
    for stateful in (False, True):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            measure(spark, Path(folder), stateful, settle_s)
    spark.stop()


if __name__ == "__main__":
    main()
