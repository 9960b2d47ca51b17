"""Spark's classes as the JVM keeps them in memory, written once and mapped by every JVM that tests start.

Tests start dozens of JVMs that live for seconds, and loading and verifying classes is a third of what each computes.
Java calls it class-data sharing. An archive serves the Java and the jars it was written with; others start as before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from sluice.spark.session import java_home_problem, open_session

if problem := java_home_problem():
    sys.exit(f"no archive of Spark's classes: {problem}")
with open_session("classes", threads=2) as spark:
    jvm = spark.sparkContext._gateway.proc
    counts = spark.readStream.format("rate").option("rowsPerSecond", 10).load().groupBy("value").count()
    counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True).start().awaitTermination()
jvm.stdin.close()
jvm.wait()
"""


def place() -> Path:
    """Beside the Spark it belongs to, so that it goes when that goes."""
    return Path(sys.prefix) / "spark.jsa"


def java_options() -> str:
    """For JVMs that live for seconds: the archive if there is one, and no compiler that needs minutes to pay."""
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    if place().exists():
        # an archive that does not fit is left aside, without a word on the output that others read
        options += [f"-XX:SharedArchiveFile={place()}", "-Xlog:disable"]
    return " ".join(options)


def write() -> None:
    """Write the archive by running a small streaming query; without Java there is none."""
    options = f"-XX:ArchiveClassesAtExit={place()} -XX:+UseSerialGC -Xlog:disable"
    subprocess.run([sys.executable, "-c", PROGRAM], env={**os.environ, "JAVA_TOOL_OPTIONS": options}, check=False)


if __name__ == "__main__":
    write()
