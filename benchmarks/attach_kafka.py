"""The step load of attach_faults for a job that reads Kafka: executors 1 -> 3 -> 1, three runs.

python -m benchmarks.attach_kafka [--runs 3]

A broker and a standalone cluster are started for every run. Batches are limited, so that records wait while there are too
few executors. The lag in the journal must be the one that Spark's own offsets give for some batch: it is exact, per
partition. Records are counted against what was written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sluice.journal.file import read_runs
from sluice.spark.kafka import connector
from sluice.testing.kafka import local_broker, make_topic
from sluice.testing.step_load.feed import TopicFeed
from sluice.testing.step_load.job import DRAINING, local_cluster, session
from sluice.testing.step_load.steps import LOW, MOST, step_up_and_down

TOPIC = "lines"
PARTITIONS = 8
RECORDS_PER_BATCH = 400
"""Four seconds of one executor: less than what arrives meanwhile at the top of the step."""


def run_once(root: Path, master: str, bootstrap: str) -> dict[str, Any]:
    make_topic(bootstrap, TOPIC, PARTITIONS)
    jars = connector.session_settings()
    spark = session(master, **{**DRAINING, "spark.cores.max": str(MOST), **jars})
    lines = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", RECORDS_PER_BATCH)
        .load()
        .selectExpr("CAST(value AS STRING) AS line")
    )
    found, query = step_up_and_down(spark, root, TopicFeed(bootstrap, TOPIC, PARTITIONS, LOW), lines=lines)
    true_lags = {lag_of(json.loads(progress.json)) for progress in query.recentProgress}
    seen = [
        metrics.lag
        for report in read_runs(root / "journal.jsonl")[-1].reports
        for metrics in report.cycle.observation.operators.values()
        if metrics.lag is not None
    ]
    spark.stop()
    return {
        **found,
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
            root = Path(folder) / "job"
            root.mkdir()
            with (
                local_broker(Path(folder) / "broker") as bootstrap,
                local_cluster(Path(folder) / "cluster") as cluster,
            ):
                words = [sys.executable, "-m", __spec__.name, "--one", str(root), cluster.master_url, bootstrap]
                subprocess.run(words, check=True)
            found = json.loads((root / "result.json").read_text())
        print(f"run {number + 1}: {', '.join(f'{name} {value}' for name, value in found.items())}", flush=True)
        bad += found["lost"] + found["repeated"] + found["wrong_lags"] + (found["highest_lag"] == 0)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
