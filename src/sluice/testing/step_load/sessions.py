"""One application, two sessions: `attach` is given one whose query is idle while the other's works, then a batch job.

Writes what it saw to ROOT/result.json. python -m sluice.testing.step_load.sessions ROOT CLUSTER_HOME
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import sluice
from sluice.journal.file import read_journal
from sluice.journal.records import Cycle
from sluice.spark.cluster.lifecycle import read_state
from sluice.testing.step_load.executors import ExecutorWatch
from sluice.testing.step_load.feed import LineFeed
from sluice.testing.step_load.job import DRAINING, session, start_query, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOAD = 160.0
"""Records/s: two executors of a hundred each."""
MOST = 4
"""More than the load needs: a standalone master starts all of them, and `attach` releases the rest once it knows."""
IDLE_S = 4.0
WATCHED_S = 3 * IDLE_S
LONGEST_BATCH_JOB_S = 600
BATCH_JOB = "batch job"


def start_idle_query(spark: SparkSession, root: Path) -> StreamingQuery:
    (root / "nothing").mkdir(parents=True)
    lines = spark.readStream.schema("line STRING").text(str(root / "nothing"))
    written = lines.writeStream.format("noop").queryName("counts")
    return written.option("checkpointLocation", str(root / "idle")).trigger(processingTime="1 second").start()


def run_batch_job(spark: SparkSession) -> None:
    """Two tasks that sleep until their group is cancelled, in a thread of their own as a user's would."""
    spark.sparkContext.setJobGroup(BATCH_JOB, BATCH_JOB, interruptOnCancel=True)
    sleeping = f"reflect('java.lang.Thread', 'sleep', {LONGEST_BATCH_JOB_S * 1000}L) AS slept"
    with contextlib.suppress(Exception):
        spark.range(0, 2, 1, 2).selectExpr(sleeping).where("slept IS NOT NULL").count()


def main(root: Path, home: Path) -> None:
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    cluster = read_state(home)
    assert cluster is not None, f"no cluster at {home}"
    spark = session(cluster.master_url, **{**DRAINING, "spark.cores.max": str(MOST)})
    idle = start_idle_query(spark, root)
    feed = LineFeed(root / "in", LOAD)
    working = start_query(spark.newSession(), root)
    attached = sluice.attach(
        spark,
        "ds2",
        policy_settings={"least_drop": 1},
        min_executors=1,
        max_executors=MOST,
        interval=2,
        cooldown=2,
        idle=IDLE_S,
        journal=root / "journal.jsonl",
    )
    with attached, ExecutorWatch(spark) as watch:
        feed.start()
        # executors that are still joining may be as many
        wait_for(lambda: _has_seen_work(root / "journal.jsonl"), working, "window with a known rate")
        wait_for(lambda: watch.executors in (2, 3) and watch.has_working(watch.executors), working, "2 or 3 executors")
        while_working = _fewest(watch, WATCHED_S)
        batch_job = threading.Thread(target=run_batch_job, args=(spark,))
        batch_job.start()
        feed.stop()
        working.stop()
        # from here on only the batch job keeps executors
        while_batch_job = _fewest(watch, WATCHED_S)
        assert batch_job.is_alive(), "the batch job ended too early to tell"
        spark.sparkContext.cancelJobGroup(BATCH_JOB)
        batch_job.join()
        wait_for(lambda: watch.executors == 1, idle, "1 executor when idle")
    result = {
        "fewest_while_the_other_session_works": while_working,
        "fewest_while_a_batch_job_runs": while_batch_job,
        "failure": repr(attached.failure) if attached.failure else None,
    }
    (root / "result.json").write_text(json.dumps(result, indent=2))
    idle.stop()
    spark.stop()


def _has_seen_work(journal: Path) -> bool:
    if not journal.exists():
        return False
    cycles = (record for record in read_journal(journal) if isinstance(record, Cycle))
    return any(metrics.input_rate for cycle in cycles for metrics in cycle.observation.operators.values())


def _fewest(watch: ExecutorWatch, duration_s: float) -> int:
    since_s = time.time()
    time.sleep(duration_s)
    return min(count for at_s, count, _ in watch.samples if at_s >= since_s)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except BaseException:
        logging.exception("failed")
        os._exit(1)
