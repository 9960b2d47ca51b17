"""Records/s and CPU seconds per million records: a pipeline on Spark over the same query in Flink SQL.

python -m benchmarks.flink --query q1 [--rounds 5] [--share 1.0] [--within 240] [--data FOLDER] [--out FILE]

Both read the same records from Parquet files on the same cores, two slots each, and throw the results away; rounds
alternate, the first of each is not counted. Flink comes from PyPI and runs as a cluster of one task manager with two
slots: objects reused, state on the heap, a checkpoint every ten seconds, mini-batches of two seconds for the running
count (`--no-mini-batch` turns them off). Spark writes its state to disk with every batch, about every two seconds. Both
engines stay up between rounds. Rates count from the moment a third is done until all is read. Rounds over all records
are kept in `--out`, and the same command goes on with those that are missing.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.flink.cluster import CACHE, ENDED, VERSION, FlinkCluster
from benchmarks.flink.data import Data
from benchmarks.flink.queries import COMPARISONS, Comparison
from benchmarks.measuring import Results, Speed, alternate, end_on_sigterm, finished_batches, ratio, speed_of
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.session import open_session

SLOTS = 2
MEASURED = Path("benchmarks/measured/flink.json")
FLINK_SETTINGS = {"execution.checkpointing.interval": "10 s"}


def run_on_spark(spark: SparkSession, comparison: Comparison, data: Mapping[str, Data], root: Path) -> Speed:
    for one in data.values():
        one.forget_readers()
    pipeline = comparison.pipeline({name: one.topic for name, one in data.items()}, "noop")
    engine = SparkEngine(pipeline, root, slots=SLOTS, spark=spark)
    engine.start(Target(parallelism={comparison.name: SLOTS}))
    query = engine.runtime.queries[comparison.name]
    ticked_s = [time.monotonic()]

    def done_records() -> int:
        if time.monotonic() - ticked_s[0] > engine.tick_s:
            engine.maintain()
            ticked_s[0] = time.monotonic()
        return sum(batch.numInputRows for batch in finished_batches(query))

    speed = speed_of(done_records, comparison.records)
    count = engine.stop()
    assert (count.lost, count.duplicated) == (0, 0), count
    return speed


def run_on_flink(cluster: FlinkCluster, comparison: Comparison, data: Mapping[str, Data]) -> Speed:
    job = cluster.submit(
        comparison.flink_statements({name: one.files for name, one in data.items()}), comparison.flink_settings
    )

    def done_records() -> int:
        # the job ends at its next checkpoint, which is none of its work
        return comparison.records if cluster.state(job) in ENDED else cluster.source_records(job)

    speed = speed_of(done_records, comparison.records, cluster.cpu_s)
    cluster.await_end(job)
    return speed


def report(name: str, speeds: Mapping[str, list[Speed]]) -> None:
    if not speeds["sluice"]:
        return
    for engine, found in speeds.items():
        rate = statistics.median(one.records_per_s for one in found)
        cpu = statistics.median(one.cpu_s_per_million for one in found)
        print(f"{name:6} {engine:6} {rate:12,.0f} records/s, {cpu:.2f} CPU s per million")
    for what in ("records_per_s", "cpu_s_per_million"):
        ours, theirs = ([getattr(one, what) for one in speeds[engine]] for engine in ("sluice", "flink"))
        print(f"{name:6} {what} over Flink {VERSION}: {ratio(ours, theirs)}")


def smaller(comparison: Comparison, share: float) -> Comparison:
    streams = tuple(replace(one, records=round(one.records * share)) for one in comparison.streams)
    return replace(comparison, streams=streams)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", choices=list(COMPARISONS), required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=1.0, help="of the records")
    parser.add_argument("--data", type=Path, default=CACHE / "data", help="where the records are kept")
    parser.add_argument("--no-mini-batch", action="store_true", help="Flink without mini-batches")
    parser.add_argument("--only-data", action="store_true", help="write the records and end")
    parser.add_argument("--out", type=Path, default=MEASURED)
    parser.add_argument("--within", type=float, default=math.inf, help="begin no round that would not end by then")
    arguments = parser.parse_args()
    comparison = smaller(COMPARISONS[arguments.query], arguments.share)
    if arguments.no_mini_batch:
        comparison = replace(comparison, flink_settings={})
    data = {stream.name: Data(arguments.data, stream) for stream in comparison.streams}
    for one in data.values():
        one.make()
    if arguments.only_data:
        return
    end_on_sigterm()
    spark = open_session("flink", threads=SLOTS).spark
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        cluster = FlinkCluster(root / "flink", slots=SLOTS, settings=FLINK_SETTINGS)
        runs: dict[str, Callable[[int], Speed]] = {
            "sluice": lambda number: run_on_spark(spark, comparison, data, root / f"run-{number}"),
            "flink": lambda _: run_on_flink(cluster, comparison, data),
        }
        results = Results(arguments.out if arguments.share == 1.0 else root / "short.json")
        case = comparison.name if not arguments.no_mini_batch else f"{comparison.name} without mini-batches"
        try:
            speeds = alternate(runs, arguments.rounds, results, case=case, within_s=arguments.within)
        finally:
            cluster.end()
    spark.stop()
    report(comparison.name, speeds)


if __name__ == "__main__":
    main()
