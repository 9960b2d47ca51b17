"""Executors 1 -> 3 -> 1 with DS2 on whichever Spark is installed; writes what it saw to ROOT/result.json.

python -m sluice.testing.step_load.steps ROOT MASTER decommission|kill

Needs sluice's core and pyspark, nothing else: no numpy, pandas or pyarrow.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import sluice
from sluice.testing.step_load.executors import ExecutorWatch
from sluice.testing.step_load.feed import LineFeed, SteppedFeed
from sluice.testing.step_load.job import DRAINING, difference, start_query, wait_for

MOST = 3
LOW, HIGH = 10.0, 220.0
"""Records/s for one executor and for three, of a hundred each."""
MODES = {"decommission": DRAINING, "kill": {}}
"""How executors are released: within a batch, handing their blocks on, or between batches."""


def main(root: Path, master: str, mode: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    spark = plain_session(master, {**MODES[mode], "spark.cores.max": str(MOST)})
    seen, _ = step_up_and_down(spark, root, LineFeed(root / "in", LOW))
    result = {
        "spark": spark.version,
        "python": ".".join(map(str, sys.version_info[:3])),
        "mode": mode,
        **seen,
    }
    (root / "result.json").write_text(json.dumps(result, indent=2))
    spark.stop()


def step_up_and_down(
    spark: SparkSession, root: Path, feed: SteppedFeed, *, lines: DataFrame | None = None
) -> tuple[dict[str, Any], StreamingQuery]:
    """Attach to the job, load it for three executors and for one again; what was seen, and the query that ended."""
    attachment = sluice.attach(
        spark,
        "ds2",
        policy_settings={"least_drop": 1},
        max_executors=MOST,
        interval=2,
        cooldown=4,
        journal=root / "journal.jsonl",
    )
    query = start_query(spark, root, lines=lines)
    with ExecutorWatch(spark) as watch, attachment:
        began_s = time.time()
        feed.start()
        wait_for(lambda: _batches(query) >= 3 and watch.executors == 1, query, "one executor")
        feed.records_per_s = HIGH
        up_s = wait_for(lambda: watch.has_working(MOST), query, f"{MOST} executors that work")
        feed.records_per_s = LOW
        down_s = wait_for(lambda: watch.executors == 1, query, "one executor again")
        executors = watch.changes(began_s, time.time())
    feed.stop()
    query.processAllAvailable()
    query.stop()
    lost, repeated = difference(root, feed.written)
    seen = {
        "records": feed.written,
        "lost": lost,
        "repeated": repeated,
        "up_s": round(up_s, 1),
        "down_s": round(down_s, 1),
        "executors": executors,
        "attach_failed": repr(attachment.failure) if attachment.failure else None,
    }
    return seen, query


def plain_session(master: str, settings: dict[str, str]) -> SparkSession:
    """As a user's own program has it, but for small executors."""
    own = {
        "spark.executor.cores": "1",
        # to begin with, where the cluster manager has no spark.cores.max
        "spark.executor.instances": "1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        **settings,
    }
    builder = SparkSession.builder.appName("steps").master(master)
    for key, value in own.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _batches(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last["batchId"])


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
    except BaseException:
        logging.exception("failed")
        os._exit(1)
