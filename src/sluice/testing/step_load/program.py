"""A step load with `attach`, faults at its height, then checks; writes what it saw to ROOT/result.json.

python -m sluice.testing.step_load.program ROOT CLUSTER_HOME [FAULT ...] [CHECK ...] [not-draining]
    [policy=ds2] [executors=4] [fulfil_within=120]

On YARN it can also be given to `spark-submit --deploy-mode cluster`: all it needs is on this machine.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

import sluice
from sluice.journal.file import read_runs
from sluice.spark.cluster.kinds import job_environment
from sluice.spark.cluster.lifecycle import read_state
from sluice.testing.step_load.checks import CHECKS, RunningJob
from sluice.testing.step_load.executors import ExecutorWatch
from sluice.testing.step_load.faults import FAULTS
from sluice.testing.step_load.feed import LineFeed
from sluice.testing.step_load.job import DRAINING, difference, session, start_query, wait_for
from sluice.testing.step_load.latency import latencies

LOW, HIGH_EACH = 10.0, 65.0
"""Records/s for one executor, and for each of the most, of a hundred each."""
SETTINGS = {"ds2": {"least_drop": 1}}
"""By policy; the others have what a user gets who sets nothing."""
LATE_S = 10.0
NOT_DRAINING = "not-draining"


def main(root: Path, home: Path, options: list[str]) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    cluster = read_state(home)
    assert cluster is not None, f"no cluster at {home}"
    os.environ.update(job_environment(cluster))
    most = int(_option(options, "executors", "4"))
    drains = {} if NOT_DRAINING in options else DRAINING
    spark = session(cluster.master_url, **{**drains, "spark.cores.max": str(most)})
    policy = _option(options, "policy", "ds2")
    attachment = sluice.attach(
        spark,
        policy,
        policy_settings=SETTINGS.get(policy),
        max_executors=most,
        interval=2,
        cooldown=4,
        fulfil_within=int(_option(options, "fulfil_within", "120")),
        journal=root / "journal.jsonl",
    )
    feed = LineFeed(root / "in", LOW)
    query = start_query(spark, root)
    times: dict[str, float] = {}
    with ExecutorWatch(spark) as watch:
        began_s = time.time()
        with attachment:
            feed.start()
            times["first batch"] = wait_for(lambda: _done(query) >= 0, query, "first batch")
            wait_for(lambda: _done(query) >= 4 and _is_on_time(query) and watch.executors == 1, query, "steady state")
            feed.records_per_s = HIGH_EACH * most
            times[f"load step to {most} executors working"] = _wait_for_working(most, watch, query)
            for fault in [name for name in options if name in FAULTS]:
                took_s = FAULTS[fault](spark, home, query)
                times[f"{fault} lost to {most} executors working"] = took_s + _wait_for_working(most, watch, query)
            feed.records_per_s = LOW
            times["load step down to one executor"] = wait_for(lambda: watch.executors == 1, query, "1 executor")
        ended_s = time.time()
        for check in [name for name in options if name in CHECKS]:
            CHECKS[check](RunningJob(spark, query, feed))
            logging.info("held: %s", check)
        feed.stop()
        query.processAllAvailable()
    exception = query.exception()
    query.stop()
    progress = [json.loads(one.json) for one in query.recentProgress]
    lost, repeated = difference(root, feed.written)
    until_s = {name: at_s for name, at_s in feed.appeared.items() if at_s <= ended_s}
    result = {
        "records": feed.written,
        "lost": lost,
        "repeated": repeated,
        "query_failed": exception is not None,
        "attach_failed": repr(attachment.failure) if attachment.failure else None,
        "times_s": {name: round(value, 1) for name, value in times.items()},
        "executors": watch.changes(began_s, ended_s),
        **_decisions(root),
        "executor_seconds": round(watch.executor_seconds(began_s, ended_s)),
        "seconds": round(ended_s - began_s),
        **asdict(latencies(root, progress, until_s, LATE_S)),
    }
    (root / "result.json").write_text(json.dumps(result, indent=2))
    spark.stop()


def _option(options: list[str], name: str, otherwise: str) -> str:
    found = [value for key, _, value in (word.partition("=") for word in options) if key == name]
    return found[0] if found else otherwise


def _decisions(root: Path) -> dict[str, Any]:
    """What `attach` says it did: how often each outcome, and what happened to it between decisions."""
    reports = read_runs(root / "journal.jsonl")[0].reports
    return {
        "outcomes": Counter(report.result.kind for report in reports),
        "events": [event for report in reports for event in report.cycle.events],
    }


def _wait_for_working(count: int, watch: ExecutorWatch, query: StreamingQuery) -> float:
    since_s = time.time()
    return wait_for(lambda: watch.has_working(count, since_s), query, f"{count} executors that work")


def _done(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None or not last.numInputRows else int(last.batchId)


def _is_on_time(query: StreamingQuery) -> bool:
    last = query.lastProgress
    return last is not None and last.durationMs["triggerExecution"] < 2500


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    except BaseException:
        logging.exception("failed")
        os._exit(1)
