"""How long nothing comes out around a rescale, over the ordinary time between two batches.

python -m benchmarks.spark_rescale_gap [--only CASE] [--rounds 5] [--within SECONDS] [--out FILE]

Records arrive all the time. An operator, stateless or counting 100,000 keys, goes up and down live; the one with state
also by rewriting it, `repartition`. `gap` is the longest time between two commits of its output from the rescale until
ten seconds after, `ordinary` the median in the twenty seconds before. Rounds are kept in `--out`, and the same command
goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.measuring import Results, SteadyFeed, ratio
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
SETTLE_S = 20.0
UP_AND_DOWN = (6, 2)
STATELESS, KEYED = "stateless", "100,000 keys"
CASES: tuple[tuple[str, Rescale], ...] = ((STATELESS, "live"), (KEYED, "live"), (KEYED, "repartition"))
MEASURED = Path("benchmarks/measured/spark-rescale-gap.json")
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


def measure(
    spark: SparkSession,
    root: Path,
    kind: str,
    how: Rescale,
    missing: Sequence[str],
    results: Results,
    until_s: float,
) -> None:
    engine = SparkEngine(
        pipeline(kind == KEYED), root, slots=8, spark=spark, feed=SteadyFeed("events", RECORDS_PER_S, keyed)
    )
    engine.start(Target(parallelism={"op": 2}))
    out = engine.runtime.topics["out"]
    assert isinstance(out, Topic)
    while out.end_offset() == 0:
        wait(engine, 0.2)
    for case in missing:
        if time.monotonic() + len(UP_AND_DOWN) * (SETTLE_S + AFTER_S) > until_s:
            break
        found = []
        for parallelism in UP_AND_DOWN:
            settled_s = time.time()
            wait(engine, SETTLE_S)
            ordinary_s = statistics.median(gaps_s(out, settled_s, time.time())[:-1])
            asked_s = time.time()
            result = engine.runtime.rescale({"op": parallelism}, how)["op"]
            took_s = time.time() - asked_s
            wait(engine, AFTER_S)
            assert result.error is None, result.error
            gap_s = max(gaps_s(out, asked_s, time.time()))
            found.append({"to": parallelism, "gap_s": gap_s, "ordinary_s": ordinary_s, "call_s": took_s})
        results.add(case, found)
    engine.stop()


def report(results: Results) -> None:
    for kind, how in CASES:
        rounds = [one for case, found in results.found.items() if case.startswith(f"{kind}, {how}") for one in found]
        if rounds:
            aim = " (aim: at most 1.1)" if how == "live" else ""
            gaps = ratio([one["gap_s"] for one in rounds], [one["ordinary_s"] for one in rounds])
            calls_s = statistics.median(one["call_s"] for one in rounds)
            print(f"{kind:12} {how:11}: gap over ordinary {gaps}{aim}; the call took {calls_s:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[f"{kind}, {how}" for kind, how in CASES], help="one of the cases")
    parser.add_argument("--rounds", type=int, default=5, help="each goes up and down again")
    parser.add_argument("--within", type=float, default=math.inf, help="begin no round that would not end by then")
    parser.add_argument("--out", type=Path, default=MEASURED)
    given = parser.parse_args()
    until_s = time.monotonic() + given.within
    results = Results(given.out)
    spark = open_session("gap", threads=16).spark
    for kind, how in CASES:
        numbers = range(1, given.rounds + 1)
        missing = [case for n in numbers if (case := f"{kind}, {how} {n}") not in results]
        if missing and given.only in (None, f"{kind}, {how}") and time.monotonic() < until_s:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                measure(spark, Path(folder), kind, how, missing, results, until_s)
    spark.stop()
    report(results)


if __name__ == "__main__":
    main()
