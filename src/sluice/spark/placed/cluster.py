"""A session on a cluster's master: one executor per worker, files that every worker shares with the driver."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import BadInputError, SluiceError
from sluice.spark.causes import root_cause
from sluice.spark.internals.status import StatusStore
from sluice.spark.placed.workers import Executor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = "driver"
FIRST_EXECUTOR_S = 90.0
SETTLED_S = 4.0
"""Executors of one cluster come within this time of each other."""
POLL_S = 0.2
ASKED = {"spark.executor.cores": "cores", "spark.executor.memory": "of memory"}
PROBE = "shared-by-workers"
PLACED_SETTINGS = {
    # a task waits for its worker rather than run on another one; one whose executor is gone does not wait
    "spark.locality.wait": "30s",
}
SETTINGS = {
    # a worker that dies fails the tasks it had: that is no fault of theirs
    "spark.task.maxFailures": "8",
    "spark.stage.maxConsecutiveAttempts": "8",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -Xss4m",
}


def executors_of(store: StatusStore) -> list[Executor]:
    """Those that are there and take tasks. One whose host is not known yet has only just registered."""
    found = [
        Executor(
            executor_id=summary["id"], host=summary["hostPort"].rpartition(":")[0], cores=int(summary["totalCores"])
        )
        for summary in store.executors()
        if summary["id"] != DRIVER and summary["isActive"] and int(summary["totalCores"]) > 0
    ]
    return [executor for executor in found if executor.host]


def await_executors(spark: SparkSession, first_within_s: float = FIRST_EXECUTOR_S) -> list[Executor]:
    """All executors the cluster gives at the start: until no more come."""
    store = StatusStore(spark)
    deadline_s = time.monotonic() + first_within_s
    found: list[Executor] = []
    changed_s = time.monotonic()
    while time.monotonic() < deadline_s:
        now = executors_of(store)
        if len(now) != len(found):
            found, changed_s = now, time.monotonic()
        if found and time.monotonic() - changed_s >= SETTLED_S:
            return found
        time.sleep(POLL_S)
    if found:
        return found
    asked = " and ".join(f"{value} {what}" for key, what in ASKED.items() if (value := spark.conf.get(key, None)))
    raise SluiceError(
        f"no executor{f' with {asked}' if asked else ''} came within {first_within_s:g} s "
        f"from {spark.sparkContext.master}; does it have workers with as much to spare?"
    )


def check_shared(spark: SparkSession, root: Path, slots: int) -> None:
    """Every worker must read what the driver wrote, and write beside it; bad input names one that does not.

    As many tasks as slots, all at the same time, so that no worker is left out. They also start the Python processes
    that the queries use later.
    """
    from py4j.protocol import Py4JJavaError

    token = uuid.uuid4().hex
    folder = root.resolve() / PROBE
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "driver").write_text(token)

    def look(_: Iterable[int]) -> Iterator[tuple[str, str | None]]:
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        host = context.getTaskInfos()[context.partitionId()].address.rpartition(":")[0]
        try:
            if (folder / "driver").read_text() != token:
                yield host, "reads another file of that name"
                return
            (folder / f"worker-{context.partitionId()}").write_text(token)
        except OSError as error:
            yield host, f"{error.strerror or error}"
            return
        yield host, None

    try:
        answers = spark.sparkContext.parallelize(range(slots), slots).barrier().mapPartitions(look).collect()
    except Py4JJavaError as error:
        raise BadInputError(
            f"the workers of {spark.sparkContext.master} cannot run Python with sluice: {root_cause(str(error))}; "
            f"PYSPARK_PYTHON must be the Python they have, got {os.environ.get('PYSPARK_PYTHON', sys.executable)!r}"
        ) from error
    for host, problem in answers:
        if problem is not None:
            raise BadInputError(
                f"--root {str(root)!r} must be a folder that all workers share with this machine; {host}: {problem}"
            )
