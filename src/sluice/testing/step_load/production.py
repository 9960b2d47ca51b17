"""An application as in production: three queries, two sessions, an owner that restarts, bursts, and processes killed.

Writes what it saw to ROOT/result.json. python -m sluice.testing.step_load.production ROOT CLUSTER_HOME
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import sluice
from sluice.spark.cluster.lifecycle import read_state
from sluice.testing.step_load.executors import ExecutorWatch, active_executors, failed_tasks
from sluice.testing.step_load.faults import FAULTS
from sluice.testing.step_load.feed import LineFeed
from sluice.testing.step_load.job import DRAINING, PATIENCE_S, difference, session, start_query, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

QUIET = {"orders": 15.0, "clicks": 10.0, "alerts": 5.0}
BURST = {"orders": 130.0, "clicks": 110.0, "alerts": 5.0}
"""Records/s of each query; an executor does a hundred. A burst as a whole needs three executors."""
MOST, IN_BURST = 4, 3
TRIGGER = "3 seconds"
"""Three queries with a batch every second keep two cores busy with nothing but starting tasks."""
KILLED = ("executor", "executor", "worker", "master")
ALL_STAGES = {"spark.ui.retainedStages": "100000", "spark.ui.retainedTasks": "1000000"}
"""A task that failed in any of them tells why."""
CANNOT_FETCH = "FetchFailed"
"""Why a task fails on an executor that works: another one, from which it reads, is gone."""


class RestartedQuery:
    """A query whose owner starts it again whenever it has failed, as a program with a loop around it does."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark, self._root = spark, root
        self._fails_next = threading.Event()
        self._ended = threading.Event()
        self.failures = 0
        self.query = self._start()
        self._owner = threading.Thread(target=self._own, daemon=True)
        self._owner.start()

    def fail(self) -> None:
        """Let the next batch fail, and wait until the query runs again."""
        before, deadline_s = self.failures, time.monotonic() + PATIENCE_S
        self._fails_next.set()
        while self.failures == before or not self.query.isActive:
            assert self._owner.is_alive(), "the owner of alerts has given up"
            assert time.monotonic() < deadline_s, f"alerts did not fail and run again within {PATIENCE_S:g} s"
            time.sleep(0.1)

    def stop(self) -> None:
        self.query.processAllAvailable()
        self._ended.set()
        self.query.stop()
        self._owner.join()

    def _start(self) -> StreamingQuery:
        return start_query(self._spark, self._root, name="alerts", trigger=TRIGGER, after_batch=self._after_batch)

    def _after_batch(self, batch_id: int) -> None:
        if self._fails_next.is_set():
            self._fails_next.clear()
            raise RuntimeError(f"batch {batch_id} cannot be delivered")

    def _own(self) -> None:
        while not self._ended.is_set():
            try:
                self.query.awaitTermination()
            except Exception as error:
                logging.info("the owner restarts its query: %s", str(error).splitlines()[0][:100])
                self.failures += 1
                self.query = self._start()


def main(root: Path, home: Path) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    cluster = read_state(home)
    assert cluster is not None, f"no cluster at {home}"
    spark = session(cluster.master_url, **{**DRAINING, **ALL_STAGES, "spark.cores.max": str(MOST)})
    roots = {name: root / name for name in QUIET}
    feeds = {name: LineFeed(roots[name] / "in", rate) for name, rate in QUIET.items()}
    attached = sluice.attach(
        spark,
        "ds2",
        policy_settings={"least_drop": 1},
        max_executors=MOST,
        interval=2,
        cooldown=4,
        journal=root / "journal.jsonl",
    )
    killed: set[str] = set()
    times: list[tuple[str, float]] = []
    with attached, ExecutorWatch(spark) as watch:
        began_s = time.time()
        orders = start_query(spark, roots["orders"], name="orders", trigger=TRIGGER)
        clicks = start_query(spark.newSession(), roots["clicks"], name="clicks", trigger=TRIGGER)
        alerts = RestartedQuery(spark, roots["alerts"])
        for feed in feeds.values():
            feed.start()
        for query in (orders, clicks, alerts.query):
            wait_for(lambda query=query: _batches(query) >= 2, orders, "batches of every query")  # type: ignore[misc]
        _set_rates(feeds, BURST)
        times.append(("burst to three executors working", _wait_for_burst(watch, orders)))
        for fault in KILLED:
            before = {one.id() for one in active_executors(spark)}
            took_s = FAULTS[fault](spark, home, orders)
            killed |= before - {one.id() for one in active_executors(spark)}
            alerts.fail()
            times.append((f"{fault} killed to three executors working", took_s + _wait_for_burst(watch, orders)))
        _set_rates(feeds, QUIET)
        times.append(("end of a burst to two executors", wait_for(lambda: watch.executors <= 2, orders, "two")))
        _set_rates(feeds, BURST)
        times.append(("burst to three executors working", _wait_for_burst(watch, orders)))
        for feed in feeds.values():
            feed.stop()
        ended_s = time.time()
        for query in (orders, clicks):
            query.processAllAvailable()
            query.stop()
        alerts.stop()
    differences = {name: difference(roots[name], feeds[name].written) for name in roots}
    result = {
        "records": {name: feed.written for name, feed in feeds.items()},
        "lost": sum(lost for lost, _ in differences.values()),
        "repeated": sum(repeated for _, repeated in differences.values()),
        "restarts_by_owner": alerts.failures,
        "killed_executors": sorted(killed, key=int),
        "taken_from_tasks": [
            (name, why.splitlines()[0][:200])
            for name, why in failed_tasks(spark)
            if name not in killed and not why.startswith(CANNOT_FETCH)
        ],
        "times_s": [(name, round(value, 1)) for name, value in times],
        "executors": watch.changes(began_s, ended_s),
        "attach_failed": repr(attached.failure) if attached.failure else None,
    }
    (root / "result.json").write_text(json.dumps(result, indent=2))
    spark.stop()


def _set_rates(feeds: dict[str, LineFeed], rates: dict[str, float]) -> None:
    for name, rate in rates.items():
        feeds[name].records_per_s = rate


def _wait_for_burst(watch: ExecutorWatch, query: StreamingQuery) -> float:
    since_s = time.time()
    return wait_for(
        lambda: any(watch.has_working(count, since_s) for count in range(IN_BURST, MOST + 1)), query, "three that work"
    )


def _batches(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last.batchId)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except BaseException:
        logging.exception("failed")
        os._exit(1)
