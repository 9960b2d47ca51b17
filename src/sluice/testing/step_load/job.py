"""The job: counts and sums of ids per key in state, each batch's counts written under its batch id.

Every record takes a fixed time of a task that sleeps, so four executors of one core have four times the capacity of one
on any machine. What is counted in the end is compared with what was written.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.cluster.kinds import KINDS
from sluice.spark.cluster.lifecycle import down
from sluice.spark.cluster.plan import ClusterState
from sluice.testing.owned import own_what_is_started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KEYS = 50
PARTITIONS = 8
RECORD_MS = 10
"""Task time of one record: an executor of one core does a hundred per second."""
PATIENCE_S = 300.0


@contextlib.contextmanager
def local_cluster(home: Path, *, workers: int = 2, slots: int = 4, kind: str = "standalone") -> Iterator[ClusterState]:
    """A cluster that ends with the block, also on SIGTERM, and with this process at the latest."""
    own_what_is_started()
    try:
        yield KINDS[kind].up(home, workers=workers, slots=slots)
    finally:
        down(home)


def session(master: str, **settings: str) -> SparkSession:
    from sluice.spark.session import open_session

    return open_session(
        "stepload",
        threads=1,
        master=master,
        settings={
            "spark.executor.cores": "1",
            # to begin with, where the cluster manager has no spark.cores.max
            "spark.executor.instances": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "4",
            # otherwise tasks wait for the executor that holds their input, and a new one on another host stays idle
            "spark.locality.wait": "0s",
            "spark.sql.files.minPartitionNum": "1",
            "spark.sql.streaming.numRecentProgressUpdates": "100000",
            "spark.sql.streaming.fileSource.cleaner.numThreads": "0",
            "spark.python.daemon.module": "pyspark.daemon",
            **settings,
        },
    ).spark


DRAINING = {
    "spark.cores.max": "4",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.replicationReattemptInterval": "2s",
}
"""What docs/attach.md tells to set."""


def wait_for(condition: Callable[[], bool], query: StreamingQuery, what: str) -> float:
    """Seconds it took; a query that failed or takes too long is an error."""
    began_s = time.monotonic()
    while not condition():
        assert query.isActive, f"the query ended while waiting for {what}: {query.exception()}"
        waited_s = time.monotonic() - began_s
        assert waited_s < PATIENCE_S, f"no {what} within {PATIENCE_S:g} s"
        time.sleep(0.1)
    return time.monotonic() - began_s


def start_query(
    spark: SparkSession,
    root: Path,
    *,
    name: str = "counts",
    trigger: str = "1 second",
    files_per_batch: int | None = None,
    lines: DataFrame | None = None,
    after_batch: Callable[[int], None] = lambda _: None,
) -> StreamingQuery:
    """Reads `lines` (one column, `line`), or the files in ROOT/in.

    `after_batch` is called in the driver before a batch counts as done: what it raises fails the query.
    """
    if lines is None:
        reader = spark.readStream.schema("line STRING")
        if files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_batch)
        lines = reader.text(str(root / "in"))
    counted = (
        # files packed into tasks would differ in size, and four executors be worth three
        lines.repartition(PARTITIONS)
        .selectExpr("CAST(line AS BIGINT) AS id", f"reflect('java.lang.Thread', 'sleep', {RECORD_MS}L) AS paced")
        .where("paced IS NOT NULL")
        .groupBy((_id() % KEYS).alias("key"))
        .agg(*_count_and_sum())
    )

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").json(str(root / "out" / f"batch={batch_id}"))
        after_batch(batch_id)

    return (
        counted.writeStream.queryName(name)
        .outputMode("update")
        .option("checkpointLocation", str(root / "checkpoint"))
        .trigger(processingTime=trigger)
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
        for part in folder.glob("part-*.json"):
            for row in map(json.loads, part.read_text().splitlines()):
                found[row["key"]] = (row["n"], row["total"])
    lost = repeated = 0
    for key in range(KEYS):
        mine = range(key, written, KEYS)
        n, total = found.get(key, (0, 0))
        lost, repeated = lost + max(0, len(mine) - n), repeated + max(0, n - len(mine))
        if n == len(mine) and total != sum(mine):
            lost, repeated = lost + 1, repeated + 1
    return lost, repeated
