"""Spark's classes as the JVM keeps them in memory, written once and mapped by every JVM that tests start.

Tests start dozens of JVMs that live for seconds, and loading and verifying classes is a third of what each computes.
Java calls it class-data sharing. An archive serves the Java and the jars it was written with; others start as before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from sluice.spark.session import java_home_problem

if problem := java_home_problem():
    sys.exit(f"no archive of Spark's classes: {problem}")
# master and worker of such a cluster live in this JVM, too
settings = {"spark.sql.shuffle.partitions": 2, "spark.executorEnv.JAVA_TOOL_OPTIONS": "-Xlog:disable"}
builder = SparkSession.builder.master("local-cluster[1,2,1024]").config(map=settings)
spark = builder.getOrCreate()
jvm = spark.sparkContext._gateway.proc
for name in sys.argv[2:]:
    spark._jvm.java.lang.Class.forName(name)
folder = sys.argv[1]
spark.range(100).write.parquet(f"{folder}/records")
records = spark.readStream.schema("id long").parquet(f"{folder}/records")
counts = records.groupBy("id").count()
counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True).start().awaitTermination()
spark.stop()
jvm.stdin.close()
jvm.wait()
"""
EXECUTOR = ("org.apache.spark.executor.CoarseGrainedExecutorBackend", "org.apache.spark.executor.Executor")
"""What only executors load."""


UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""Classes that Spark generates at run time are not verified, either."""


def place() -> Path:
    """Beside the Spark it belongs to, so that it goes when that goes."""
    return Path(sys.prefix) / "spark.jsa"


def java_options() -> str:
    """For JVMs that live for seconds: the archive if there is one, and no compiler that needs minutes to pay."""
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *UNVERIFIED]
    if place().exists():
        # an archive that does not fit is left aside, without a word on the output that others read
        options += [f"-XX:SharedArchiveFile={place()}", "-Xlog:disable"]
    return " ".join(options)


def write() -> None:
    """Write the archive by running a small streaming query; without Java there is none."""
    options = f"-XX:ArchiveClassesAtExit={place()} -XX:+UseSerialGC -Xlog:disable"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROGRAM, folder, *EXECUTOR]
        subprocess.run(command, env={**os.environ, "JAVA_TOOL_OPTIONS": options}, check=False)


if __name__ == "__main__":
    write()
