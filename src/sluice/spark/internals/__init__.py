"""Every private call of Spark, and nothing else: what the rest of sluice needs that PySpark does not offer.

Those for placing tasks and for Kubernetes alone are in files of their own beside it.

Each function names the versions of Spark it was seen working on. Where another version lacks a call, a function either
has a fallback, named in its docstring, or raises `MissingCallError`, which names the version and the call. A session
that has been stopped raises `ApplicationEndedError`. What Spark itself raises passes through.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sluice.errors import SluiceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Json = dict[str, Any]
DRIVER = "driver"
"""Its id among those of the executors."""


class MissingCallError(SluiceError):
    """This version of Spark lacks a private call that sluice needs."""


class ApplicationEndedError(SluiceError):
    """The session's application has been stopped."""


@contextmanager
def needs(spark: SparkSession, call: str) -> Iterator[None]:
    """Turn a call that does not exist into `MissingCallError`; Py4J has three ways to say so."""
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

    try:
        yield
    except (Py4JJavaError, Py4JNetworkError):
        raise
    except (AttributeError, TypeError, Py4JError) as error:
        if isinstance(error, Py4JError) and "does not exist" not in str(error):
            raise
        raise MissingCallError(f"Spark {spark.version} has no {call}, which sluice needs: {error}") from error


def is_session(spark: object) -> bool:
    """Whether it is a SparkSession at all, of Spark Connect or not.

    Seen on Spark 4.3.0.
    """
    return hasattr(type(spark), "readStream")


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect, which has no driver in this process.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    return not hasattr(spark, "_jsparkSession")


def has_ended(spark: SparkSession) -> bool:
    """Whether the application was stopped, here or in its JVM; not known of one that does not answer: false.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    from py4j.protocol import Py4JError

    context: Any = spark.sparkContext._jsc
    if context is None:
        return True
    try:
        return bool(context.sc().isStopped())
    except (Py4JError, OSError):
        return False


def is_unanswered(error: BaseException) -> bool:
    """Whether an error came from the JVM or the connection to it, rather than from code in Python."""
    from py4j.protocol import Py4JError

    return isinstance(error, Py4JError | ConnectionError | TimeoutError)


def root_cause(error: BaseException) -> str:
    """What went wrong at the root of a Java exception, in one line and without its stack."""
    cause: Any = getattr(error, "java_exception", None)
    if cause is None:
        return " ".join(str(error).split())[:300]
    while cause.getCause() is not None:
        cause = cause.getCause()
    return " ".join(str(cause.toString()).split())[:300]


def context_of(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext._jsc
    if context is None:
        raise ApplicationEndedError("the Spark application has ended")
    return context.sc()


def jvm_of(spark: SparkSession) -> Any:
    return spark._jvm


def jvm_process(spark: SparkSession) -> subprocess.Popen[bytes] | None:
    """The driver's JVM; null where something else started it. It ends when its input does. Seen on Spark 4.3.0."""
    return getattr(spark.sparkContext._gateway, "proc", None)


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


def repartition_state(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Rewrite the state of a stopped query, whose last batch is committed, into another number of partitions.

    Seen on Spark 4.3.0. Versions 3.5 to 4.1 do not have it.
    """
    with needs(spark, "checkpoint manager that repartitions state"):
        repartition: Any = spark._streamingCheckpointManager.repartition
    repartition(checkpoint, partitions)


def analyzed_plan(frame: DataFrame) -> Any:
    """The analyzed logical plan, for `check_streaming` and `keeps_state`.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    with needs(frame.sparkSession, "analyzed plan"):
        return frame._jdf.queryExecution().analyzed()


def check_streaming(spark: SparkSession, plan: Any, output_mode: str) -> None:
    """What Spark checks when a query starts, raised as its `AnalysisException`.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    with needs(spark, "UnsupportedOperationChecker"):
        jvm = jvm_of(spark)
        mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
        getattr(jvm, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker").checkForStreaming(plan, mode)


def keeps_state(plan: Any, stateful_nodes: Collection[str]) -> bool:
    """Whether a streaming node of these names, or a join of two streams, is in the plan.

    Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    found = plan.children()
    children = [found.apply(index) for index in range(found.size())]
    name = plan.nodeName()
    if plan.isStreaming() and name in stateful_nodes:
        return True
    if name == "Join" and all(child.isStreaming() for child in children):
        return True
    return any(keeps_state(child, stateful_nodes) for child in children)


def replace_local_files(spark: SparkSession, class_name: str, source: str) -> None:
    """Compile a Hadoop file system with Spark's own compiler and put it in the place of the one for local files.

    Does nothing if it is there already. Seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0.
    """
    context = context_of(spark)
    with needs(spark, "Janino compiler or Hadoop file system"):
        jvm = jvm_of(spark)
        file_systems = jvm.org.apache.hadoop.fs.FileSystem
        configuration = jvm.org.apache.hadoop.conf.Configuration(context.hadoopConfiguration())
        local = jvm.java.net.URI.create("file:///")
        present = file_systems.get(local, configuration)
        if present.getClass().getName() == class_name:
            return
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(present.getClass().getClassLoader())
        compiler.cook(source)
        configuration.setClassLoader(compiler.getClassLoader())
        configuration.set("fs.file.impl", class_name)
        present.close()
        file_systems.get(local, configuration)
