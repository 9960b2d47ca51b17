"""Records/s of a q1-like job (read bids, price in euros, write) on Spark, against a hand-written plain PySpark job.

python -m benchmarks.spark_throughput [--rounds 5] [--records N] [--within 300] [--out FILE]

All read the same Parquet files with the same two task threads: `plain` is one file-source-to-file-sink query as one
would write it without sluice, in a program of its own with Spark as it comes; `tuned` is the same query in the session
that sluice starts; `chained` has the three operators in one query between two topics; `separate` gives each its own
query with topics in between, so every record is written and read three times instead of once. Rates are taken over the
last two thirds of the records, when batches have reached their size, in rounds that alternate; the first round, in
which the JVM compiles, is not counted. Ratios are those to `tuned`, round by round. Rounds over all records are kept
in `--out`, and the same command goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.measuring import Results, Speed, alternate, ratio, speed_of
from sluice import Pipeline
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.session import open_session
from sluice.spark.topic import Topic
from sluice.spark.topic.sink import arrow_schema

SCHEMA = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, at TIMESTAMP"
RECORDS_PER_FILE = 100_000
FILES_PER_BATCH = 10
RECORDS = 24_000_000
CORES = 2
MEASURED = Path("benchmarks/measured/spark-throughput.json")
KEEPER = "keeps-it-all"
AIMS = {"chained": 0.9, "separate": 0.6}


def bids(first: int, schema: pa.Schema) -> pa.Table:
    numbers = np.arange(first, first + RECORDS_PER_FILE)
    columns = [numbers % 1000, numbers * 7 % 100_003, numbers * 31 % 10_007]
    channels = pa.array([f"channel-{n}" for n in range(100)]).take(pa.array(numbers % 100))
    at = pa.array(numbers * 10, pa.timestamp("us", "UTC"))
    return pa.table([*(pa.array(column) for column in columns), channels, at], schema=schema)


def parse(bids: DataFrame) -> DataFrame:
    return bids.where("auction IS NOT NULL")


def euros(parse: DataFrame) -> DataFrame:
    return parse.selectExpr("auction", "bidder", "price * 0.908 AS price", "channel", "at")


def keep(euros: DataFrame) -> DataFrame:
    return euros.selectExpr("auction", "bidder", "price", "channel", "at")


def pipeline(source: Path, *, chain: bool) -> Pipeline:
    made = Pipeline("q1", chain=chain)
    made.source("bids", SCHEMA, topic=str(source))
    for function in (parse, euros, keep):
        made.operator(function)
    made.sink("out", "keep")
    return made


def run_plain(spark: SparkSession, source: Path, root: Path, total: int) -> Speed:
    frame = (
        spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_PER_BATCH).parquet(f"{source}/segments/*")
    )
    query = (
        keep(euros(parse(frame)))
        .writeStream.format("parquet")
        .option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    done: dict[int, int] = {}

    def done_records() -> int:
        progress = query.lastProgress
        if progress is not None:
            done[progress.batchId] = progress.numInputRows
        return sum(done.values())

    speed = speed_of(done_records, total)
    query.stop()
    return speed


class PlainProgram:
    """The plain job in a process and a JVM of its own, which stay: it is as warm as the others in every round."""

    def __init__(self, source: Path, total: int) -> None:
        command = [sys.executable, "-m", "benchmarks.spark_throughput", "--inside", str(source), str(total)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, root: Path) -> Speed:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(root, file=self._process.stdin, flush=True)
        return Speed(**json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        self._process.communicate()


def be_plain_program(source: Path, total: int) -> None:
    spark = SparkSession.builder.master(f"local[{CORES}]").getOrCreate()
    for line in sys.stdin:
        print(json.dumps(asdict(run_plain(spark, source, Path(line.strip()), total))), flush=True)
    spark.stop()


def run_sluice(spark: SparkSession, source: Path, root: Path, total: int, *, chain: bool) -> Speed:
    engine = SparkEngine(pipeline(source, chain=chain), root, slots=CORES * 3, spark=spark)
    engine.start(Target(parallelism=dict.fromkeys(engine.graph.names, CORES)))
    out = engine.runtime.topics["out"]

    ticked_s = [time.monotonic()]

    def done_records() -> int:
        if time.monotonic() - ticked_s[0] > engine.tick_s:
            engine.maintain()
            ticked_s[0] = time.monotonic()
        return out.end_offset()

    speed = speed_of(done_records, total)
    count = engine.stop()
    assert (count.lost, count.duplicated, out.end_offset()) == (0, 0, total), (count, out.end_offset())
    return speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--within", type=float, default=math.inf, help="begin no round that would not end by then")
    parser.add_argument("--out", type=Path, default=MEASURED)
    parser.add_argument("--inside", nargs=2, metavar=("SOURCE", "TOTAL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        be_plain_program(Path(arguments.inside[0]), int(arguments.inside[1]))
        return
    total = arguments.records
    spark = open_session("throughput", threads=CORES).spark
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        schema = arrow_schema(spark.createDataFrame([], SCHEMA).schema)
        topic = Topic.create(root / "bids", schema)
        topic.register(KEEPER)
        for number in range(total // RECORDS_PER_FILE):
            topic.append(bids(number * RECORDS_PER_FILE, schema), producer="bench", batch_id=number)
        plain = PlainProgram(topic.path, total)

        def tuned(where: Path) -> Speed:
            return run_plain(spark, topic.path, where, total)

        def chained(where: Path) -> Speed:
            return run_sluice(spark, topic.path, where, total, chain=True)

        def separate(where: Path) -> Speed:
            return run_sluice(spark, topic.path, where, total, chain=False)

        def with_all_to_read(run: Callable[[Path], Speed], number: int) -> Speed:
            for consumer in topic.consumers().keys() - {KEEPER}:
                topic.unregister(consumer)
            with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as where:
                return run(Path(where) / str(number))

        runs = {
            name: partial(with_all_to_read, run)
            for name, run in (("plain", plain.run), ("tuned", tuned), ("chained", chained), ("separate", separate))
        }
        results = Results(arguments.out if total == RECORDS else root / "short.json")
        report(alternate(runs, arguments.rounds, results, case="q1-like", within_s=arguments.within))
        plain.end()
    spark.stop()


def report(speeds: dict[str, list[Speed]]) -> None:
    for name, found in speeds.items():
        if not found:
            return
        rate = statistics.median(speed.records_per_s for speed in found)
        cpu = statistics.median(speed.cpu_s_per_million for speed in found)
        over_tuned = ratio([one.records_per_s for one in found], [one.records_per_s for one in speeds["tuned"]])
        aim = f" (aim: at least {AIMS[name]})" if name in AIMS else ""
        print(f"{name:9} {rate:12,.0f} records/s, {cpu:.2f} CPU s per million; over tuned {over_tuned}{aim}")


if __name__ == "__main__":
    main()
