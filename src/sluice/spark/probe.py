"""Asks Spark for its JSON: progress events as they come, stage data when somebody looks. No judgement here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Json = dict[str, Any]


class ProgressListener:
    """Hands every progress event on as JSON, called in Spark's listener thread.

    PySpark's own listener copies each event field by field through the gateway, some hundred calls per batch; this one
    asks for the text.
    """

    def __init__(self, spark: SparkSession, on_progress: Callable[[Json], None]) -> None:
        from pyspark import java_gateway

        self._on_progress = on_progress
        self._streams: Any = spark.streams._jsqm
        jvm: Any = spark._jvm
        gateway: Any = java_gateway
        gateway.ensure_callback_server_started(spark.sparkContext._gateway)
        self._listener = jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self)
        self._streams.addListener(self._listener)

    def close(self) -> None:
        self._streams.removeListener(self._listener)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._on_progress(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def json_mapper(spark: SparkSession) -> Any:
    """Writes Spark's own objects as JSON: one call through the gateway instead of one per field."""
    jvm: Any = spark._jvm
    mapper: Any = jvm.com.fasterxml.jackson.databind.ObjectMapper()
    module = getattr(jvm.com.fasterxml.jackson.module.scala, "DefaultScalaModule$")
    mapper.registerModule(getattr(module, "MODULE$"))
    return mapper


class StageProbe:
    """Jobs and stages of a query from the status store, each handed out once, when it is complete."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext._jsc.sc()
        jvm: Any = spark._jvm
        self._arrays: Any = jvm.java.util.Arrays
        self._tracker: Any = context.statusTracker()
        self._store: Any = context.statusStore()
        self._mapper = json_mapper(spark)
        self._newest_job: dict[str, int] = {}

    def new_jobs(self, run_id: str) -> list[tuple[Json, list[Json]]]:
        """Finished jobs of this run since the last call, oldest first, each with its stages."""
        newest = self._newest_job.get(run_id, -1)
        found = []
        # as text in one call: an array of the JVM costs two calls per element, and this one has all jobs of the run
        known = json.loads(self._arrays.toString(self._tracker.getJobIdsForGroup(run_id)))
        for job_id in sorted(job_id for job_id in known if job_id > newest):
            job = self._json(self._store.job, job_id)
            if job is None or job["status"] == "RUNNING":
                break
            newest = job_id
            stages = [self._json(self._store.lastStageAttempt, stage_id) for stage_id in job["stageIds"]]
            found.append((job, [stage for stage in stages if stage is not None]))
        self._newest_job[run_id] = newest
        return found

    def _json(self, get: Callable[[int], Any], key: int) -> Json | None:
        from py4j.protocol import Py4JJavaError

        try:
            found: Json = json.loads(self._mapper.writeValueAsString(get(key)))
            return found
        except Py4JJavaError:
            # not in the store: a skipped stage never was, an old one has been dropped
            return None
