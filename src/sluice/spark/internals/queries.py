"""Private calls about running queries and their progress; see `sluice.spark.internals`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sluice.spark.internals import Json, MissingCallError, jvm_of, needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ProgressListener:
    """Hands every progress event on as JSON, called in Spark's listener thread.

    PySpark's own listener copies each event field by field through the gateway, some hundred calls per batch; this one
    asks for the text. Spark hands a listener the events of one session's queries: `streams` is that session's manager
    of queries, by default the one of `spark`. Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """

    def __init__(self, spark: SparkSession, on_progress: Callable[[Json], None], streams: Any = None) -> None:
        from pyspark import java_gateway

        self._on_progress = on_progress
        with needs(spark, "streaming query listener"):
            gateway: Any = java_gateway
            self.streams: Any = spark.streams._jsqm if streams is None else streams
            gateway.ensure_callback_server_started(spark.sparkContext._gateway)
            self._listener = jvm_of(spark).org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self)
            self.streams.addListener(self._listener)

    def close(self) -> None:
        self.streams.removeListener(self._listener)

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


class RunningQuery:
    """One run of a query of any session, as Spark executes it.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """

    def __init__(self, execution: Any) -> None:
        self._execution = execution
        self.query_id = str(execution.id().toString())
        self.run_id = str(execution.runId().toString())
        self.name: str | None = execution.name()

    def status(self) -> Json:
        """`message`, `isTriggerActive` and `isDataAvailable`, as in PySpark's status of a query."""
        found: Json = json.loads(self._execution.status().json())
        return found

    def trigger_interval_s(self) -> float | None:
        """The interval of a processing-time trigger; null for other triggers and where Spark does not say."""
        from py4j.protocol import Py4JError

        try:
            interval_ms = self._execution.trigger().intervalMs()
        except Py4JError:
            return None
        return interval_ms / 1000 if interval_ms else None

    @property
    def streams(self) -> Any:
        """What manages the queries of its session."""
        return self._execution.sparkSession().streams()


class ApplicationQueries:
    """The running queries of all sessions of an application, and their progress.

    Sessions share a state, which has the running queries of all of them; where a version of Spark lacks it, only those
    of the given session are known. A listener is added to a session when a query of it is first seen, and removed when
    it has none left. Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._on_progress: Callable[[Json], None] | None = None
        self._own: ProgressListener | None = None
        self._others: list[ProgressListener] = []
        self._seen = ""
        self.run_ids: frozenset[str] = frozenset()
        """Runs there were at the last look."""
        with needs(spark, "streaming query manager"):
            self._own_streams: Any = spark.streams._jsqm
        self._shared: Any = None
        with suppress(MissingCallError), needs(spark, "activeStreamingQueries"):
            self._shared = spark._jsparkSession.sharedState().activeStreamingQueries()

    def running(self) -> list[RunningQuery]:
        """By id, which a query keeps with its checkpoint."""
        found = sorted((RunningQuery(one) for one in self._executions()), key=lambda query: query.query_id)
        self.run_ids = frozenset(query.run_id for query in found)
        return found

    def listen(self, on_progress: Callable[[Json], None]) -> None:
        """Hand on the progress of the session's queries, and of other sessions' from the next `refresh` on."""
        self._on_progress = on_progress
        self._own = ProgressListener(self._spark, on_progress)
        self.refresh()

    def refresh(self) -> None:
        """Follow sessions that begin or end to have queries; one call to Spark while nothing changes."""
        if self._on_progress is None or self._shared is None:
            return
        seen = str(self._shared.toString())
        if seen == self._seen:
            return
        managers: list[Any] = []
        for query in self.running():
            if query.streams != self._own_streams and query.streams not in managers:
                managers.append(query.streams)
        for listener in [one for one in self._others if one.streams not in managers]:
            self._others.remove(listener)
            listener.close()
        known = [one.streams for one in self._others]
        for streams in managers:
            if streams not in known:
                self._others.append(ProgressListener(self._spark, self._on_progress, streams))
        self._seen = seen

    def close(self) -> None:
        for listener in [*self._others, *([self._own] if self._own else [])]:
            listener.close()
        self._own, self._others = None, []

    def _executions(self) -> list[Any]:
        if self._shared is not None:
            # Py4J's own `values` asks for key after key, and a query may end in between
            return list(jvm_of(self._spark).java.util.Collections.list(self._shared.elements()))
        with needs(self._spark, "streamingQuery"):
            return [wrapper.streamingQuery() for wrapper in self._own_streams.active()]
