"""The program of a test: step load, faults, and back, with `attach`; prints what it saw as JSON.

python -m tests.spark.stepjob ROOT CLUSTER_HOME [executor worker master ...]
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

import sluice
from sluice.engines.spark.standalone import read_state
from tests.spark import stepload

LOW, HIGH = 30.0, 280.0
"""Records/s for one executor and for four, of a hundred each."""
OBJECTIVE_S = 10.0


def main(root: Path, home: Path, faults: list[str]) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    cluster = read_state(home)
    assert cluster is not None, f"no cluster at {home}"
    spark = stepload.session(cluster.master_url, **stepload.DRAINING)
    attachment = sluice.attach(
        spark,
        "ds2",
        max_executors=4,
        interval=3,
        cooldown=9,
        objective=f"latency<{OBJECTIVE_S:g}s",
        journal=root / "journal.jsonl",
    )
    feed = stepload.LineFeed(root / "in", LOW)
    query = stepload.start_query(spark, root)
    times: dict[str, float] = {}
    with stepload.Watch(spark) as watch, attachment:
        began_s = time.time()
        feed.start()
        times["first batch"] = stepload.wait_for(lambda: _read(query) > 0, query, "first batch")
        times["down to the minimum at the start"] = stepload.wait_for(lambda: watch.executors == 1, query, "minimum")
        stepload.wait_for(lambda: _read(query) > 6 * LOW and _is_on_time(query), query, "steady state")
        assert watch.executors == 1, watch.changes(began_s)
        feed.records_per_s = HIGH
        times["step to four executors working"] = _wait_for_four(watch, query)
        for fault in faults:
            took_s = stepload.FAULTS[fault](spark, home, query)
            times[f"{fault} killed to four executors working"] = took_s + _wait_for_four(watch, query)
        feed.records_per_s = LOW
        times["step down to one executor"] = stepload.wait_for(lambda: watch.executors == 1, query, "1 executor")
        feed.stop()
        query.processAllAvailable()
        ended_s = time.time()
    exception = query.exception()
    query.stop()
    progress = [json.loads(one.json) for one in query.recentProgress]
    lost, repeated = stepload.difference(root, feed.written)
    result = {
        "records": feed.written,
        "lost": lost,
        "repeated": repeated,
        "query_failed": exception is not None,
        "attach_failed": repr(attachment.failure) if attachment.failure else None,
        "times_s": {name: round(value, 1) for name, value in times.items()},
        "executors": watch.changes(began_s),
        "executor_seconds": round(watch.executor_seconds(began_s, ended_s)),
        "seconds": round(ended_s - began_s),
        **asdict(stepload.latencies(root, progress, feed.appeared, OBJECTIVE_S)),
    }
    (root / "result.json").write_text(json.dumps(result, indent=2))
    spark.stop()


def _wait_for_four(watch: stepload.Watch, query: StreamingQuery) -> float:
    since_s = time.time()
    return stepload.wait_for(lambda: watch.has_working(4, since_s), query, "4 executors that work")


def _read(query: StreamingQuery) -> int:
    return sum(one.numInputRows for one in query.recentProgress)


def _is_on_time(query: StreamingQuery) -> bool:
    last = query.lastProgress
    return last is not None and last.durationMs["triggerExecution"] < 1500


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    except BaseException:
        logging.exception("failed")
        os._exit(1)
