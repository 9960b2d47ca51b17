"""One Spark session, tuned for many small streaming queries side by side."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import BadInputError, SluiceError
from sluice.spark.forkserver import ensure_started
from sluice.spark.local_files import use_quick_local_files
from sluice.spark.worker_python import command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
SETTINGS = {
    # queries take turns: without it one operator's backlog starves the others
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
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
    "spark.driver.extraJavaOptions": f"-Xss16m -Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
    "spark.driver.memory": "1g",
    # timestamps as Arrow has them: a topic's reader need not convert
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.python.daemon.module": "sluice.spark.worker_daemon",
}


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


def start_session(
    name: str, *, threads: int, master: str | None = None, settings: dict[str, str] | None = None
) -> SparkSession:
    """Start Spark here with so many task threads, or reach a cluster's master; a missing Java is bad input."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    problem = java_home_problem()
    if problem and master is None:
        raise BadInputError(problem)
    # Spark logs every refused plan as JSON; the caller gets the exception and says it in one line
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)
    # workers must be the same Python as the driver, which need not be the first on the PATH
    python = sys.executable
    if master is None:
        python = command()
        ensure_started()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    builder = SparkSession.builder.appName(name).master(master or f"local[{threads}]")
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise SluiceError(f"Spark did not start: {error}; `sluice doctor` looks for the reason") from error
    use_quick_local_files(spark)
    return spark
