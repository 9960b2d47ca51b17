"""A stateful job under a step load on a standalone cluster, in a program of its own: what `attach` is shown with.

Records are lines in files that appear at a given rate. Every record takes a fixed time of a task that sleeps, so four
executors of one core have four times the capacity of one on any machine. The job counts and sums ids per key in state
and writes each batch's counts under its batch id; what is counted in the end is compared with what was written.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from sluice.spark.cluster.standalone import ClusterState, alive_workers, down, read_state, up

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KEYS = 50
PARTITIONS = 8
RECORD_MS = 10
"""Task time of one record: an executor of one core does a hundred per second."""
FILES_PER_S = 4
PATIENCE_S = 150.0


class LineFeed:
    """Writes files of numbered lines at `records_per_s`, which may be changed; knows when each record appeared."""

    def __init__(self, folder: Path, records_per_s: float) -> None:
        folder.mkdir(parents=True)
        self.records_per_s = records_per_s
        self.written = 0
        self.appeared: dict[str, float] = {}
        """File -> Unix time it appeared."""
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        due, last_s = 0.0, time.monotonic()
        while not self._ended.wait(1 / FILES_PER_S):
            now_s = time.monotonic()
            due, last_s = due + (now_s - last_s) * self.records_per_s, now_s
            count, due = int(due), due % 1
            if count:
                self._write(count)

    def _write(self, count: int) -> None:
        lines = "".join(f"{number:010d}\n" for number in range(self.written, self.written + count))
        hidden = self._folder / f".{self.written}"
        hidden.write_text(lines)
        self.written += count
        name = f"{self.written:010d}.txt"
        self.appeared[name] = time.time()
        hidden.rename(self._folder / name)


@contextlib.contextmanager
def cluster(home: Path, *, workers: int = 2, slots: int = 4) -> Iterator[ClusterState]:
    """A cluster for as long as this program needs it, also if it is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        yield up(home, workers=workers, slots=slots)
    finally:
        down(home)


def session(master: str, **settings: str) -> SparkSession:
    from sluice.spark.session import start_session

    return start_session(
        "stepload",
        threads=1,
        master=master,
        settings={
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.files.minPartitionNum": "1",
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
            "spark.sql.streaming.fileSource.cleaner.numThreads": "0",
            "spark.python.daemon.module": "pyspark.daemon",
            **settings,
        },
    )


DRAINING = {
    "spark.cores.max": "4",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.replicationReattemptInterval": "2s",
}
"""What docs/attach.md tells to set."""


def start_query(spark: SparkSession, root: Path) -> StreamingQuery:
    lines = spark.readStream.schema("line STRING").text(str(root / "in"))
    counted = (
        # files packed into tasks would differ in size, and four executors be worth three
        lines.repartition(PARTITIONS)
        .selectExpr("CAST(line AS BIGINT) AS id", f"reflect('java.lang.Thread', 'sleep', {RECORD_MS}L) AS paced")
        .where("paced IS NOT NULL")
        .groupBy((_id() % KEYS).alias("key"))
        .agg(*_count_and_sum())
    )

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").parquet(str(root / "out" / f"batch={batch_id}"))

    return (
        counted.writeStream.queryName("counts")
        .outputMode("update")
        .option("checkpointLocation", str(root / "checkpoint"))
        .trigger(processingTime="1 second")
        .foreachBatch(write)
        .start()
    )


def _id() -> Any:
    from pyspark.sql import functions

    return functions.col("id")


def _count_and_sum() -> tuple[Any, Any]:
    from pyspark.sql import functions

    return functions.count("*").alias("n"), functions.sum("id").alias("total")


def difference(root: Path, written: int) -> tuple[int, int]:
    """(lost, repeated) records by key, the job's last counts against what was written; sums must agree as well."""
    found: dict[int, tuple[int, int]] = {}
    for folder in sorted((root / "out").iterdir(), key=lambda path: int(path.name.partition("=")[2])):
        for row in pq.read_table(folder, partitioning=None).to_pylist():
            found[row["key"]] = (row["n"], row["total"])
    ids = np.arange(written)
    lost = repeated = 0
    for key in range(KEYS):
        mine = ids[ids % KEYS == key]
        n, total = found.get(key, (0, 0))
        lost, repeated = lost + max(0, len(mine) - n), repeated + max(0, n - len(mine))
        if n == len(mine) and total != mine.sum():
            lost, repeated = lost + 1, repeated + 1
    return lost, repeated


def active_executors(spark: SparkSession) -> list[Any]:
    """Spark's own summaries of those that have joined and not left; a process that is still starting is none."""
    found = spark.sparkContext._jsc.sc().statusStore().executorList(True)
    summaries = [found.apply(position) for position in range(found.length())]
    return [one for one in summaries if one.id() != "driver"]


@dataclass
class Watch:
    """Executors over time, sampled from outside of `attach`."""

    spark: Any
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    """(Unix time, executors, those that have finished a task)"""
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def executors(self) -> int:
        return self.samples[-1][1] if self.samples else 0

    def has_working(self, count: int, since_s: float = 0.0) -> bool:
        """Whether so many executors are there and have finished a task, as seen later than `since_s`."""
        at_s, _, working = self.samples[-1] if self.samples else (0.0, 0, 0)
        return at_s > since_s and working == count

    def executor_seconds(self, began_s: float, ended_s: float) -> float:
        inside = [(at_s, count) for at_s, count, _ in self.samples if began_s <= at_s <= ended_s]
        pairs = itertools.pairwise(inside)
        return sum((later_s - at_s) * count for (at_s, count), (later_s, _) in pairs)

    def changes(self, began_s: float, ended_s: float) -> list[tuple[float, int]]:
        found: list[tuple[float, int]] = []
        for at_s, count, _ in self.samples:
            if at_s <= ended_s and (not found or found[-1][1] != count):
                found.append((round(at_s - began_s, 1), count))
        return found

    def _run(self) -> None:
        while not self._ended.wait(0.25):
            here = active_executors(self.spark)
            self.samples.append((time.time(), len(here), sum(one.completedTasks() > 0 for one in here)))


def wait_for(condition: Callable[[], bool], query: StreamingQuery, what: str) -> float:
    """Seconds it took; a query that failed or takes too long is an error."""
    began_s = time.monotonic()
    while not condition():
        assert query.isActive, f"the query ended while waiting for {what}: {query.exception()}"
        waited_s = time.monotonic() - began_s
        assert waited_s < PATIENCE_S, f"no {what} within {PATIENCE_S:g} s"
        time.sleep(0.1)
    return time.monotonic() - began_s


@dataclass(frozen=True)
class Latencies:
    """By record: from the moment its file appeared to the end of the batch it was in."""

    p50_s: float
    p95_s: float
    longest_s: float
    batches: int
    batches_late: int


def latencies(
    root: Path, progress: list[Mapping[str, Any]], appeared: Mapping[str, float], objective_s: float
) -> Latencies:
    """Of the files in `appeared`, by the log in which Spark notes the batch of each.

    Its row counts would not do: what is computed anew after a loss is in them twice.
    """
    from sluice.spark.attach.application import read_batch

    ended = {
        one["sources"][0]["endOffset"]["logOffset"]: read_batch(one).ended_s for one in progress if one["numInputRows"]
    }
    order = sorted(ended)
    waits, counts, per_batch = [], [], defaultdict(list)
    for name, entry in _source_log(root).items():
        if name not in appeared:
            continue
        batch = order[bisect.bisect_left(order, entry)]
        waits.append(ended[batch] - appeared[name])
        counts.append((root / "in" / name).read_text().count("\n"))
        per_batch[batch].append(waits[-1])
    values = np.repeat(waits, counts)
    p50_s, p95_s = np.percentile(values, [50, 95])
    late = sum(max(found) > objective_s for found in per_batch.values())
    return Latencies(float(p50_s), float(p95_s), float(values.max()), len(per_batch), late)


def _source_log(root: Path) -> dict[str, int]:
    """File name -> entry of the source's log."""
    found: dict[str, int] = {}
    for part in (root / "checkpoint" / "sources" / "0").iterdir():
        if not part.name.startswith("."):
            for line in part.read_text().splitlines()[1:]:
                entry = json.loads(line)
                found[entry["path"].rpartition("/")[2]] = entry["batchId"]
    return found


def executor_processes(application_id: str) -> dict[str, int]:
    """Executor id -> process, of those that run on this machine."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().decode().split("\0")
                if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in command and application_id in command:
                    found[command[command.index("--executor-id") + 1]] = int(entry.name)
    return found


def kill_executor(spark: SparkSession, _home: Path, query: StreamingQuery) -> float:
    """Returns when Spark has noticed; seconds that took."""
    name, process = max(executor_processes(spark.sparkContext.applicationId).items(), key=lambda one: int(one[0]))
    os.kill(process, signal.SIGKILL)
    return _notice_loss(spark, query, {name})


def kill_worker(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """Of the workers the one with most executors; they end with it."""
    workers = [process for name, process in _processes(home).items() if name.startswith("worker")]
    children = {worker: _children(worker) for worker in workers}
    busiest = max(workers, key=lambda worker: len(children[worker]))
    here = executor_processes(spark.sparkContext.applicationId)
    os.kill(busiest, signal.SIGKILL)
    return _notice_loss(spark, query, {name for name, process in here.items() if process in children[busiest]})


def kill_master(_spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """The cluster's supervisor starts another one; returns when workers have found it."""
    killed = _processes(home)["master"]
    os.kill(killed, signal.SIGKILL)
    return wait_for(lambda: _processes(home)["master"] != killed and _alive_workers(home) > 0, query, "a new master")


def _notice_loss(spark: SparkSession, query: StreamingQuery, lost: set[str]) -> float:
    return wait_for(lambda: not lost & {one.id() for one in active_executors(spark)}, query, "a loss that shows")


def _children(process: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found += [int(entry.name)] if parent == process else []
    return found


def _processes(home: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((home / "cluster.json").read_text())["process_ids"]
    return found


def _alive_workers(home: Path) -> int:
    state = read_state(home)
    return len(alive_workers(state)) if state else 0


FAULTS: dict[str, Callable[[Any, Path, Any], float]] = {
    "executor": kill_executor,
    "worker": kill_worker,
    "master": kill_master,
}
