"""Private calls that ask Spark for its settings, jobs, stages and executors; see `sluice.spark.internals`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import DRIVER, Json, MissingCallError, context_of, jvm_of, needs, root_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _json_mapper(spark: SparkSession) -> Any:
    """Writes Spark's own objects as JSON: one call through the gateway instead of one per field.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    with needs(spark, "Jackson mapper for Scala"):
        jackson: Any = jvm_of(spark).com.fasterxml.jackson
        mapper = jackson.databind.ObjectMapper()
        mapper.registerModule(getattr(getattr(jackson.module.scala, "DefaultScalaModule$"), "MODULE$"))
    return mapper


def session_settings(spark: SparkSession) -> dict[str, str]:
    """All settings of a session: its application's, and what was set since.

    Seen on Spark 3.5.9 and 4.3.0.
    """
    with needs(spark, "settings of a session"):
        settings = spark._jsparkSession.conf().getAll()
    found: dict[str, str] = json.loads(_json_mapper(spark).writeValueAsString(settings))
    return found


class StatusStore:
    """What Spark knows of jobs, stages and executors, as the JSON of its REST API.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """

    def __init__(self, spark: SparkSession) -> None:
        context = context_of(spark)
        self._spark = spark
        with needs(spark, "status store"):
            self._backend: Any = context.schedulerBackend()
            self._store: Any = context.statusStore()
            self._tracker: Any = context.statusTracker()
            self._arrays: Any = jvm_of(spark).java.util.Arrays
        self._mapper = _json_mapper(spark)

    def job_ids(self, run_id: str) -> list[int]:
        """All jobs of a run of a query that the store has not dropped, oldest first."""
        # as text in one call: an array of the JVM costs two calls per element
        return sorted(json.loads(self._arrays.toString(self._tracker.getJobIdsForGroup(run_id))))

    def job(self, job_id: int) -> Json | None:
        return self._found(self._store.job, job_id)

    def stage(self, stage_id: int) -> Json | None:
        """The last attempt of a stage; null if the store does not know it (skipped, or dropped long ago)."""
        return self._found(self._store.lastStageAttempt, stage_id)

    def executors(self) -> list[Json]:
        """Summaries of the active executors, the driver among them.

        The store may list one that is lost until its heartbeats have been missing for minutes (SPARK-35011): a block
        manager that registers late looks like another executor. So only those the scheduler has count, where it says.
        """
        found: list[Json] = json.loads(self._mapper.writeValueAsString(self._store.executorList(True)))
        with suppress(MissingCallError), needs(self._spark, "getExecutorIds"):
            known = {DRIVER, *str(self._backend.getExecutorIds().mkString(",")).split(",")}
            return [one for one in found if one["id"] in known]
        return found

    def active_job_ids(self) -> list[int]:
        """Jobs that run now, of all sessions and threads of the application."""
        found: list[int] = json.loads(self._arrays.toString(self._tracker.getActiveJobIds()))
        return found

    def _found(self, get: Callable[[int], Any], key: int) -> Json | None:
        from py4j.protocol import Py4JJavaError

        try:
            found: Json = json.loads(self._mapper.writeValueAsString(get(key)))
        except Py4JJavaError as error:
            if "NoSuchElement" not in root_cause(error):
                raise
            return None
        return found
