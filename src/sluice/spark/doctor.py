"""Can Spark run here? Each check says what it found and, if not good enough, what to do."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sluice.spark.session import java_command, java_home_problem

Verdict = Literal["ok", "warning", "problem"]

OLDEST_PYTHON = (3, 11)
JAVA_VERSIONS = (17, 21, 25)
"""What Spark 4.3 is tested with."""
LEAST_MEMORY_MB = 2000
GOOD_MEMORY_MB = 4000
LEAST_DISK_MB = 500
GOOD_DISK_MB = 5000
JAVA_PATIENCE_S = 60


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    check: str
    verdict: Verdict
    found: str
    advice: str = ""


def diagnose(folder: Path) -> list[Finding]:
    """All checks; `folder` is where topics and checkpoints are going to be."""
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("Java", check_java),
        ("Python", check_python),
        ("packages", check_packages),
        ("memory", check_memory),
        ("cores", check_cores),
        ("ports", check_ports),
        ("disk", lambda: check_disk(folder)),
    ]
    return [_guarded(name, check) for name, check in checks]


def check_java() -> Finding:
    problem = java_home_problem()
    if problem:
        return Finding("Java", "problem", "none", problem)
    try:
        said = subprocess.run(
            [java_command(), "-version"], capture_output=True, text=True, timeout=JAVA_PATIENCE_S, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("Java", "problem", "does not start", f"{java_command()} -version: {error}")
    return judge_java(said)


def judge_java(said: str) -> Finding:
    """From what `java -version` prints."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if not found:
        first = said.strip().splitlines()[0] if said.strip() else "nothing"
        return Finding("Java", "problem", first, "java -version names no version; install Java 17 or 21")
    major = int(found.group(1)) if found.group(1) != "1" else int(found.group(2) or 0)
    if major < JAVA_VERSIONS[0]:
        return Finding("Java", "problem", f"Java {major}", "Spark needs Java 17 or 21 on the PATH or in JAVA_HOME")
    if major not in JAVA_VERSIONS:
        return Finding("Java", "warning", f"Java {major}", "Spark is tested with Java 17 and 21")
    return Finding("Java", "ok", f"Java {major}")


def check_python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("Python", "problem", found, f"sluice needs Python {'.'.join(map(str, OLDEST_PYTHON))} or newer")
    return Finding("Python", "ok", found)


def check_packages() -> Finding:
    versions = {}
    for name in ("pyspark", "pyarrow", "pandas"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return Finding("packages", "problem", f"{name} is missing", "install sluice[spark]")
    if int(versions["pandas"].split(".")[0]) >= 3:
        return Finding("packages", "problem", f"pandas {versions['pandas']}", "PySpark 4.3 needs pandas below 3")
    return Finding("packages", "ok", ", ".join(f"{name} {version}" for name, version in versions.items()))


def check_memory() -> Finding:
    free_mb = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        available = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())
        free_mb = int(available.group(1)) // 1024 if available else free_mb
    return judge_amount("memory", free_mb, LEAST_MEMORY_MB, GOOD_MEMORY_MB, "close programs or run fewer slots")


def check_cores() -> Finding:
    cores = os.cpu_count() or 1
    if cores < 2:
        return Finding(
            "cores", "warning", f"{cores}", "batches will take long to start; use fewer slots, longer triggers"
        )
    return Finding("cores", "ok", f"{cores}")


def check_ports() -> Finding:
    """Driver and Python workers talk over ports of this machine that the system chooses."""
    try:
        with socket.socket() as server, socket.socket() as client:
            server.bind(("127.0.0.1", 0))
            server.listen(1)
            client.settimeout(5)
            client.connect(server.getsockname())
            socket.getaddrinfo(socket.gethostname(), None)
    except socket.gaierror:
        name = socket.gethostname()
        return Finding(
            "ports", "problem", f"{name!r} has no address", "add it to /etc/hosts or set SPARK_LOCAL_IP=127.0.0.1"
        )
    except OSError as error:
        return Finding("ports", "problem", str(error), "allow connections from this machine to itself")
    return Finding("ports", "ok", "local connections work")


def check_disk(folder: Path) -> Finding:
    place = folder if folder.exists() else Path(tempfile.gettempdir())
    try:
        with tempfile.NamedTemporaryFile(dir=place):
            free_mb = shutil.disk_usage(place).free // 2**20
    except OSError as error:
        return Finding("disk", "problem", f"{place}: {error.strerror}", "choose a folder that can be written to")
    return judge_amount("disk", free_mb, LEAST_DISK_MB, GOOD_DISK_MB, f"free some space in {place}")


def judge_amount(check: str, free_mb: int, least_mb: int, good_mb: int, advice: str) -> Finding:
    found = f"{free_mb:,} MB free"
    if free_mb < least_mb:
        return Finding(check, "problem", found, f"at least {least_mb:,} MB are needed; {advice}")
    if free_mb < good_mb:
        return Finding(check, "warning", found, f"{good_mb:,} MB are better; {advice}")
    return Finding(check, "ok", found)


def _guarded(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except Exception as error:
        return Finding(name, "warning", "could not be checked", f"{type(error).__name__}: {error}")
