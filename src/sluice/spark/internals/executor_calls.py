"""Private calls that request and release executors; see `sluice.spark.internals`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluice.spark.internals import context_of, jvm_of, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def request_executors(spark: SparkSession, total: int) -> None:
    """Tell the cluster manager how many executors the application should have.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    context, jvm = context_of(spark), jvm_of(spark)
    with needs(spark, "requestTotalExecutors"):
        no_preference = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        context.requestTotalExecutors(total, 0, no_preference)


def decommission_executors(spark: SparkSession, ids: Sequence[str]) -> list[str]:
    """Let executors finish their tasks, hand their blocks on and end; the ids that Spark accepted.

    The requested total stays as it is. Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    context, jvm = context_of(spark), jvm_of(spark)
    with needs(spark, "decommissionExecutor"):
        worker_host = jvm.scala.Option.apply(None)
        info = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("scaled down", worker_host)
        backend = context.schedulerBackend()
        adjust_total, by_executor = False, False
        return [name for name in ids if backend.decommissionExecutor(name, info, adjust_total, by_executor)]


def kill_idle_executors(spark: SparkSession, ids: Sequence[str]) -> list[str]:
    """End those of the executors that run no task; the ids that Spark ended. The requested total stays as it is.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    context, jvm = context_of(spark), jvm_of(spark)
    with needs(spark, "killExecutors"):
        names = jvm.java.util.ArrayList()
        for name in ids:
            names.add(name)
        adjust_total, count_failures, force = False, False, False
        ended = context.schedulerBackend().killExecutors(
            jvm.PythonUtils.toSeq(names), adjust_total, count_failures, force
        )
        return [str(ended.apply(position)) for position in range(ended.length())]
