"""How long nothing comes out while a job is rescaled, and how old a record is when it comes out: Spark and Flink.

python -m benchmarks.flink.rescale [--rounds 2]

20,000 records/s, a count over 100,000 keys, from two slots to six and back. Flink has its adaptive scheduler and a
checkpoint every second; a share of its output is printed with the times at which records were made and came out. Ours
rescales live, a batch a second; an output's time is that of its commit, a record's that of its arrival in the topic.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.flink.cluster import FlinkCluster
from benchmarks.measuring import SteadyFeed, end_on_sigterm, finished_batches
from benchmarks.spark_rescale_gap import KEYS, RECORDS_PER_S, gaps_s, keyed, pipeline
from sluice.control.engine import wait
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.session import open_session
from sluice.spark.topic import Topic

FEW, MANY = 2, 6
SETTLE_S, AFTER_S = 15.0, 10.0
PRINTED = 200
"""One key in so many."""
ADAPTIVE = {
    "jobmanager.scheduler": "adaptive",
    "execution.checkpointing.interval": "1 s",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "0 s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 s",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 s",
}
STATEMENTS = [
    f"""
    CREATE TEMPORARY TABLE events (`key` BIGINT, made AS CURRENT_TIMESTAMP) WITH (
        'connector' = 'datagen', 'rows-per-second' = '{RECORDS_PER_S:.0f}',
        'fields.key.min' = '0', 'fields.key.max' = '{KEYS - 1}')
    """,
    "CREATE TEMPORARY TABLE results (`key` BIGINT, records BIGINT, made TIMESTAMP_LTZ(3), ended TIMESTAMP_LTZ(3)) "
    "WITH ('connector' = 'print')",
    f"""
    INSERT INTO results SELECT `key`, records, made, CURRENT_TIMESTAMP FROM (
        SELECT `key`, COUNT(*) AS records, MAX(made) AS made FROM events GROUP BY `key`)
    WHERE MOD(`key`, {PRINTED}) = 0
    """,
]
LINE = re.compile(r"\+[IU]\[\d+, \d+, (\S+), (\S+)\]")


def seconds(text: str) -> float:
    return float(np.datetime64(text.rstrip("Z")).astype("datetime64[ms]").astype(np.int64)) / 1000


def flink_output(cluster: FlinkCluster) -> list[tuple[float, float]]:
    """When each printed record was made and when it came out."""
    found = (LINE.search(line) for line in cluster.output().read_text().splitlines())
    return sorted((seconds(one[1]), seconds(one[2])) for one in found if one is not None)


def on_flink(cluster: FlinkCluster, rounds: int) -> None:
    job = cluster.submit(STATEMENTS, {"parallelism.default": str(FEW)})
    require(cluster, job, FEW)
    time.sleep(SETTLE_S)
    for parallelism in [MANY, FEW] * rounds:
        asked_s = time.time()
        require(cluster, job, parallelism)
        time.sleep(AFTER_S)
        ended = sorted(out for _, out in flink_output(cluster))
        within = [moment for moment in ended if asked_s - 1 <= moment <= time.time()]
        gap_s = max(later - earlier for earlier, later in itertools.pairwise(within))
        print(f"flink  to {parallelism}: nothing came out for {gap_s:.2f} s", flush=True)
        time.sleep(SETTLE_S - AFTER_S)
    say_latency("flink", [out - made for made, out in flink_output(cluster)[-2000:]])
    cluster.ask(f"/jobs/{job}?mode=cancel", {}, method="PATCH")


def require(cluster: FlinkCluster, job: str, parallelism: int) -> None:
    where = f"/jobs/{job}/resource-requirements"
    wanted = {"lowerBound": 1, "upperBound": parallelism}
    cluster.ask(where, {vertex: {"parallelism": wanted} for vertex in cluster.ask(where)}, method="PUT")


def on_spark(spark: SparkSession, root: Path, rounds: int) -> None:
    feed = SteadyFeed("events", RECORDS_PER_S, keyed)
    engine = SparkEngine(pipeline(True), root, slots=8, spark=spark, feed=feed)
    engine.start(Target(parallelism={"op": FEW}))
    out, events = engine.runtime.topics["out"], engine.runtime.topics["events"]
    assert isinstance(out, Topic)
    assert isinstance(events, Topic)
    # so that nothing of it is dropped
    events.register("latency")
    wait(engine, SETTLE_S)
    for parallelism in [MANY, FEW] * rounds:
        asked_s = time.time()
        engine.runtime.rescale({"op": parallelism}, "live")
        wait(engine, AFTER_S)
        gap_s = max(gaps_s(out, asked_s, time.time()))
        print(f"sluice to {parallelism}: nothing came out for {gap_s:.2f} s", flush=True)
        wait(engine, SETTLE_S - AFTER_S)
    say_latency("sluice", latencies_s(engine, events, out))
    engine.stop()


def latencies_s(engine: SparkEngine, events: Topic, out: Topic) -> list[float]:
    """Of records of the last ten batches: from their arrival to the commit of the batch that had them."""
    batches = [json.loads(one.json) for one in finished_batches(engine.runtime.queries["op"])]
    progress = [one for one in batches if one["numInputRows"]][-10:]
    committed_s = {commit.batch_id: commit.arrival_time_s for commit in out.commits()}
    arrived = [(commit.start_offset, commit.records, commit.arrival_time_s) for commit in events.commits()]
    found = []
    for batch in progress:
        first = batch["sources"][0]["startOffset"]["offset"]
        last = batch["sources"][0]["endOffset"]["offset"]
        for start, records, moment in arrived:
            share = min(last, start + records) - max(first, start)
            if share > 0 and batch["batchId"] in committed_s:
                found += [committed_s[batch["batchId"]] - moment] * max(1, share // 1000)
    return found


def say_latency(name: str, values_s: Sequence[float]) -> None:
    high = statistics.quantiles(values_s, n=100)[98]
    print(f"{name:6} latency p50 {statistics.median(values_s) * 1000:.0f} ms, p99 {high * 1000:.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    rounds = parser.parse_args().rounds
    end_on_sigterm()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        cluster = FlinkCluster(Path(folder) / "flink", slots=MANY, settings=ADAPTIVE)
        try:
            on_flink(cluster, rounds)
        finally:
            cluster.end()
        with open_session("rescale", threads=16) as spark:
            on_spark(spark, Path(folder) / "run", rounds)


if __name__ == "__main__":
    main()
