"""The step load of attach_faults for a job that reads Kafka: executors 1 -> 3 -> 1, three runs.

python -m benchmarks.attach_kafka [--runs 3]

A broker and a standalone cluster are started for every run. The lag in the journal must be the one that Spark's own
offsets give for some batch: it is exact, per partition. Records are counted against what was written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import sluice
from sluice.journal.file import read_runs
from sluice.spark.cluster import lifecycle
from sluice.spark.kafka import broker, connector
from sluice.testing.kafka import make_topic
from sluice.testing.step_load.executors import ExecutorWatch
from sluice.testing.step_load.job import DRAINING, difference, local_cluster, session, start_query, wait_for

TOPIC = "lines"
PARTITIONS = 8
MOST = 3
LOW, HIGH = 20.0, 220.0
"""Records/s for one executor and for three, of a hundred each."""


class TopicFeed:
    """Numbered lines at `records_per_s`, which may be changed, spread over the partitions."""

    def __init__(self, bootstrap: str, records_per_s: float) -> None:
        self.records_per_s = records_per_s
        self.written = 0
        self._bootstrap = bootstrap
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all"})
        due, last_s = 0.0, time.monotonic()
        while not self._ended.wait(0.1):
            now_s = time.monotonic()
            due, last_s = due + (now_s - last_s) * self.records_per_s, now_s
            count, due = int(due), due % 1
            for number in range(self.written, self.written + count):
                producer.produce(TOPIC, f"{number:010d}", partition=number % PARTITIONS)
            self.written += count
            producer.poll(0)
        producer.close()


def run_once(root: Path, master: str, bootstrap: str) -> dict[str, Any]:
    make_topic(bootstrap, TOPIC, PARTITIONS)
    jars = connector.session_settings()
    spark = session(master, **{**DRAINING, "spark.cores.max": str(MOST), **jars})
    lines = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("CAST(value AS STRING) AS line")
    )
    journal = root / "journal.jsonl"
    attachment = sluice.attach(
        spark,
        "ds2",
        policy_settings={"least_drop": 1},
        max_executors=MOST,
        interval=2,
        cooldown=4,
        journal=journal,
    )
    feed = TopicFeed(bootstrap, LOW)
    query = start_query(spark, root, lines=lines)
    with ExecutorWatch(spark) as watch, attachment:
        feed.start()
        wait_for(lambda: query.lastProgress is not None and watch.executors == 1, query, "one executor")
        feed.records_per_s = HIGH
        up_s = wait_for(lambda: watch.has_working(MOST), query, f"{MOST} executors that work")
        feed.records_per_s = LOW
        down_s = wait_for(lambda: watch.executors == 1, query, "one executor again")
        true_lags = {lag_of(json.loads(progress.json)) for progress in query.recentProgress}
    feed.stop()
    query.processAllAvailable()
    query.stop()
    lost, repeated = difference(root, feed.written)
    seen = [
        metrics.lag
        for report in read_runs(journal)[-1].reports
        for metrics in report.cycle.observation.operators.values()
        if metrics.lag is not None
    ]
    spark.stop()
    return {
        "records": feed.written,
        "lost": lost,
        "repeated": repeated,
        "up_s": round(up_s, 1),
        "down_s": round(down_s, 1),
        "lags": len(seen),
        "highest_lag": max(seen, default=0),
        "wrong_lags": sum(lag not in true_lags for lag in seen),
    }


def lag_of(progress: dict[str, Any]) -> int:
    (source,) = progress["sources"]
    end, latest = source["endOffset"][TOPIC], source["latestOffset"][TOPIC]
    return sum(latest[partition] - end[partition] for partition in latest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        root, master, bootstrap = arguments.one
        (Path(root) / "result.json").write_text(json.dumps(run_once(Path(root), master, bootstrap)))
        return
    bad = 0
    for number in range(arguments.runs):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            home, root = Path(folder) / "broker", Path(folder) / "job"
            root.mkdir()
            bootstrap = broker.up(home).master_url
            try:
                with local_cluster(Path(folder) / "cluster") as cluster:
                    words = [sys.executable, "-m", __spec__.name, "--one", str(root), cluster.master_url, bootstrap]
                    subprocess.run(words, check=True)
            finally:
                lifecycle.down(home)
            found = json.loads((root / "result.json").read_text())
        print(f"run {number + 1}: {', '.join(f'{name} {value}' for name, value in found.items())}", flush=True)
        bad += found["lost"] + found["repeated"] + found["wrong_lags"]
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
