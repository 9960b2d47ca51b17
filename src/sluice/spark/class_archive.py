"""Spark's classes as a JVM keeps them in memory: written once, when a first session ends, and mapped by all later ones.

Loading and verifying classes is a third of what starting Spark computes. Java calls it class-data sharing. An archive
fits the Java and the jars it was written with and is named after them; one that does not fit is left aside by Java.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from sluice.spark.cluster.cache import cache_folder

SILENT = "-Xlog:disable"
"""About an archive that does not fit Java would talk on the output of whoever started it."""
IN_PLACE = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
"""At a random address Java would rewrite every pointer of the archive: no page of it would be shared, all in memory."""
PATIENCE_S = 60.0
ABANDONED_S = 3600.0
MOST_KEPT = 3
"""Of 180 MB each: every environment with a Spark of its own has another."""
queries_started = threading.Event()
"""Without a query an archive has a third of the classes that the next session needs, and would never get the others."""
OTHERS = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")


class ClassArchive:
    """Of one Java and one Spark."""

    def __init__(self, java: str, spark_home: Path) -> None:
        found = Path(shutil.which(java) or java).resolve()
        parts = [str(part) + _stamp(part) for part in (found, spark_home / "jars")]
        name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        self.path = cache_folder() / "classes" / f"spark-{name}.jsa"
        self._written = self.path.with_name(f"{self.path.name}.{os.getpid()}")

    def java_options(self) -> str:
        """With which a JVM uses the archive, or writes it when it ends; empty where neither can be."""
        if any(one in os.environ.get("JAVA_TOOL_OPTIONS", "") for one in OTHERS):
            return ""
        if self.path.exists():
            return f"-XX:SharedArchiveFile={self.path} {IN_PLACE} {SILENT}"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ""
        if not os.access(self.path.parent, os.W_OK):
            return ""
        self._sweep()
        return f"-XX:ArchiveClassesAtExit={self._written} {SILENT}"

    def keep_at_exit(self, jvm: subprocess.Popen[bytes] | None) -> None:
        """When this process ends, end the JVM and wait for what it writes, if it was to write."""
        if jvm is not None and jvm.stdin is not None and str(self._written) in str(jvm.args):
            atexit.register(self._keep, jvm, jvm.stdin)

    def _keep(self, jvm: subprocess.Popen[bytes], its_input: IO[bytes]) -> None:
        its_input.close()
        try:
            jvm.wait(PATIENCE_S)
            if queries_started.is_set():
                self._written.replace(self.path)
            else:
                self._written.unlink()
        except (OSError, subprocess.TimeoutExpired):
            self._written.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """What processes that were killed have left may be incomplete; the oldest make room for the one to come."""
        with suppress(OSError):  # others sweep, too
            for left in self.path.parent.glob(f"{self.path.name}.*"):
                if time.time() - left.stat().st_mtime > ABANDONED_S:
                    left.unlink(missing_ok=True)
            complete = sorted(self.path.parent.glob("spark-*.jsa"), key=lambda path: path.stat().st_mtime)
            for old in complete[: len(complete) - MOST_KEPT + 1]:
                old.unlink(missing_ok=True)


def _stamp(path: Path) -> str:
    """Changes when the file or folder is replaced."""
    try:
        return f":{path.stat().st_mtime_ns}"
    except OSError:
        return ""
