"""What real-time mode needs from inside Spark: ending a query where its batch ends; see `sluice.spark.internals`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import jvm_of, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.02


def end_after_batch(spark: SparkSession, query: StreamingQuery) -> None:
    """Have the query end by itself when its batch is committed, as one with the trigger `availableNow` does.

    `stop` interrupts the batch, and what it had written is written again by the next run. Here nothing is interrupted:
    the thread of the query finds that it is over when it looks for its next batch. Seen on Spark 4.3.0.
    """
    with needs(spark, "StreamExecution.state"):
        runtime = jvm_of(spark).org.apache.spark.sql.execution.streaming.runtime
        over = getattr(getattr(runtime, "TERMINATED$"), "MODULE$")
        _execution(query).state().set(over)


def has_ended(query: StreamingQuery) -> bool:
    """Whether its thread is over; `isActive` is false as soon as the end is wanted. Seen on Spark 4.3.0."""
    return not _execution(query).queryExecutionThread().isAlive()


def await_end(query: StreamingQuery, timeout_s: float) -> bool:
    """Wait for its thread; false if that took longer. Seen on Spark 4.3.0."""
    deadline_s = time.monotonic() + timeout_s
    while not has_ended(query):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(POLL_S)
    return True


def _execution(query: StreamingQuery) -> Any:
    return query._jsq.streamingQuery()
