"""One Spark session, tuned for many small streaming queries side by side.

A session that runs already belongs to somebody else: its context is shared, its settings stay as they are, and it is
never stopped here.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import BadInputError, SluiceError
from sluice.spark import early_jvm
from sluice.spark.causes import root_cause
from sluice.spark.class_archive import ClassArchive
from sluice.spark.early_jvm import Launch, environment
from sluice.spark.forkserver import ADDRESS, ensure_started
from sluice.spark.internals import jvm_process
from sluice.spark.local_files import use_quick_local_files
from sluice.spark.masters import check_answers
from sluice.spark.worker_python import command

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession

POOL = "spark.scheduler.pool"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
NEEDED_SPARK = "4.3"
"""Pipelines rewrite state with a call, and read it with classes, that older versions do not have."""
TASK_TRIES = 4
"""As on a cluster; `local[N]` alone would let one failed task end its query."""
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
SETTINGS = {
    # queries take turns: without it one operator's backlog starves the others
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # counting rows looks up every key before it is written, which costs more than writing it
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # on local files both are a rename; the default one also starts a process to look for a link, several times per file
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # a restart or rewrite replays every change since the last snapshot: a minute's worth took longer than the rest
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # the number of partitions is ours to choose
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "2000",
    "spark.ui.retainedStages": "4000",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "10",
    # the rewrite of an error's text inside Spark recurses per character of a Python traceback
    JAVA_OPTIONS: f"-Xss16m -Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
    "spark.driver.memory": "1g",
    # timestamps as Arrow has them: a topic's reader need not convert
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.python.daemon.module": "sluice.spark.worker_daemon",
}


FEW_CORES = 2
COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
COMPILER = re.compile(r"-XX:[+-]?(\w*Tier|CompileThreshold)|-Xint|-Xcomp")
LATE_OPTIMISER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Ten times Java's own: what runs all the time is optimised all the same, a moment later."""
JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Where a user may have chosen options of Java; two garbage collectors at once are an error."""


def machine_options() -> str:
    """What suits a JVM on few cores; what a user has chosen is left alone.

    A collector of many threads gains nothing there, and G1 takes hundreds of MB more for the same heap. The optimising
    compiler competes with the work it is to speed up: a third of what a start computes is code that never pays for it.
    """
    if (os.cpu_count() or 1) > FEW_CORES:
        return ""
    chosen = " ".join(os.environ.get(variable, "") for variable in JAVA_VARIABLES)
    options = (("-XX:+UseSerialGC", COLLECTOR), (LATE_OPTIMISER, COMPILER))
    return " ".join(option for option, choice in options if not choice.search(chosen))


def java_command() -> str:
    """The Java that Spark is going to use, as Spark itself looks for it."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def java_home_problem() -> str | None:
    """Why Spark would find no Java here, or None."""
    if shutil.which(java_command()):
        return None
    home = os.environ.get("JAVA_HOME")
    if home:
        return f"JAVA_HOME is {home!r}, but there is no bin/java in it; point it to a Java 17 or 21"
    return "Java is missing: Spark needs Java 17 or 21 on the PATH or in JAVA_HOME"


class SessionHandle:
    """A session to use, and whether it is ours to stop. As a context manager it gives the session."""

    def __init__(self, spark: SparkSession, *, owned: bool) -> None:
        self.spark = spark
        self.owned = owned
        self._closing = ExitStack()
        if owned:
            self._closing.enter_context(quiet_errors())
            self._closing.callback(spark.stop)

    def close(self) -> None:
        """Stop the session if it was started here; a second call does nothing."""
        self._closing.close()

    def __enter__(self) -> SparkSession:
        return self.spark

    def __exit__(self, *_: object) -> None:
        self.close()


def begin_session() -> None:
    """Start the JVM for a session here that is about to be opened with our settings alone; others start their own."""
    if java_home_problem() is None:
        early_jvm.begin(_launch(None, SETTINGS, _class_archive()))


def open_session(
    name: str,
    *,
    threads: int,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    python_sources: bool = False,
) -> SessionHandle:
    """Start Spark here with so many task threads, or on a cluster's master; share a context that runs already.

    A running context that has another master, fewer threads or other `settings` is bad input, as is a missing Java.
    With `python_sources` the processes that Spark starts, one per source written in Python, are forked from a warm one.
    """
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        return SessionHandle(_shared_session(threads, master, settings or {}), owned=False)
    spark = _new_session(name, threads, master, {**SETTINGS, **(settings or {})}, python_sources=python_sources)
    return SessionHandle(spark, owned=True)


def _new_session(
    name: str, threads: int, master: str | None, settings: Mapping[str, str], *, python_sources: bool
) -> SparkSession:
    import pyspark
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    installed = pyspark.__version__
    if not installed.startswith(f"{NEEDED_SPARK}."):
        raise BadInputError(f"pipelines need pyspark {NEEDED_SPARK}, got {installed}; sluice.attach works with it")
    if problem := java_home_problem():
        raise BadInputError(problem)
    if master is not None:
        check_answers(master)
    archive = _class_archive()
    launch = _launch(master, settings, archive, python_sources=python_sources)
    early_jvm.take(launch)
    builder = SparkSession.builder.appName(name).master(master or f"local[{threads},{TASK_TRIES}]")
    for key, value in launch.settings.items():
        builder = builder.config(key, value)
    try:
        # the context and its JVM copy these when they start
        with environment(launch.variables):
            spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise SluiceError(f"Spark did not start: {error}; `sluice doctor` looks for the reason") from error
    except Py4JJavaError as error:
        raise no_application(error, master) from error
    archive.keep_at_exit(jvm_process(spark))
    use_quick_local_files(spark)
    return spark


def _class_archive() -> ClassArchive:
    import pyspark

    return ClassArchive(java_command(), Path(pyspark.__file__).parent)


def _launch(
    master: str | None, settings: Mapping[str, str], archive: ClassArchive, *, python_sources: bool = False
) -> Launch:
    # workers must be the same Python as the driver, which need not be the first on the PATH
    variables = {"PYSPARK_PYTHON": command(), "PYSPARK_DRIVER_PYTHON": command()}
    if master is not None and "PYSPARK_PYTHON" in os.environ:
        variables["PYSPARK_PYTHON"] = os.environ["PYSPARK_PYTHON"]
    if python_sources and (address := ensure_started()):
        # executors of a cluster do not get it: their processes belong to their workers
        variables[ADDRESS] = address
    java_options = " ".join(filter(None, (settings[JAVA_OPTIONS], machine_options(), archive.java_options())))
    return Launch({**settings, JAVA_OPTIONS: java_options}, variables)


def no_application(error: Py4JJavaError, master: str | None) -> SluiceError:
    """A master that gives no application makes Spark stop its context: the error is that of whoever uses it next."""
    if master is not None and "stopped SparkContext" in str(error):
        return BadInputError(f"what answers at {master!r} did not accept the application; is that a Spark master?")
    return SluiceError(f"Spark did not start{f' on {master!r}' if master else ''}: {root_cause(str(error))}")


def _shared_session(threads: int, master: str | None, settings: Mapping[str, str]) -> SparkSession:
    """A session of its own on the context that runs: what is set or registered in it, nobody else sees."""
    from pyspark.sql import SparkSession

    # without options of its own the builder changes nothing
    running = SparkSession.builder.getOrCreate()
    present = str(running.sparkContext.master)
    remedy = "stop that session first"
    if master is not None and master != present:
        raise BadInputError(f"a Spark session is already running on {present!r}, not on {master!r}; {remedy}")
    if (has := local_threads(present)) is not None and has < threads:
        sufficient = f"local[{threads},{TASK_TRIES}]"
        raise BadInputError(
            f"the Spark session that is already running has {has} task threads ({present!r}), {threads} are needed; "
            f"{remedy}, or start it with {sufficient!r}"
        )
    shared = running.newSession()
    for key, value in {**SETTINGS, **settings}.items():
        if shared.conf.isModifiable(key):
            shared.conf.set(key, value)
        elif key in settings and shared.conf.get(key, None) != value:
            raise BadInputError(
                f"the Spark session that is already running has {key} {shared.conf.get(key, None)!r}, "
                f"{value!r} is needed; {remedy}"
            )
    return shared


def local_threads(master: str) -> int | None:
    """How many tasks a local master runs at once; None for a cluster, whose slots come and go."""
    if master == "local":
        return 1
    parts = re.fullmatch(r"local\[\s*(\d+|\*)\s*(?:,\s*\d+\s*)?\]", master)
    if parts is None:
        return None
    return (os.cpu_count() or 1) if parts.group(1) == "*" else int(parts.group(1))


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str], *, pool: str) -> Iterator[None]:
    """Settings and a scheduler pool for what is started inside; both as before afterwards.

    A query copies them when it starts. Assumes that nothing else starts on this session at the same time.
    """
    context = spark.sparkContext
    before = {key: spark.conf.get(key, None) for key in settings}
    pool_before = context.getLocalProperty(POOL)
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        context.setLocalProperty(POOL, pool)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
        context.setLocalProperty(POOL, pool_before)  # type: ignore[arg-type] # None removes it


@contextmanager
def quiet_errors() -> Iterator[None]:
    """Spark logs every error of a plan as pages of JSON; whoever uses this reports it in one line."""
    loggers = [logging.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
