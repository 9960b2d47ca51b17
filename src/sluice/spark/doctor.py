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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sluice.errors import BadInputError
from sluice.spark.session import NEEDED_SPARK, java_command, java_home_problem

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class Needs:
    """What one line of Spark is released for."""

    oldest_python: tuple[int, int]
    java: tuple[int, ...]


OLDEST_PYTHON = (3, 10)
"""What sluice itself needs."""
SUPPORTED = {
    "3.5": Needs((3, 8), (8, 11, 17)),
    "4.0": Needs((3, 9), (17, 21)),
    "4.1": Needs((3, 10), (17, 21)),
    "4.2": Needs((3, 10), (17, 21)),
    "4.3": Needs((3, 11), (17, 21, 25)),
}
NEWEST = list(SUPPORTED)[-1]
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


@dataclass(frozen=True, kw_only=True)
class Versions:
    """What is to be used elsewhere, or later; null: what is here."""

    spark: str | None = None
    java: str | None = None
    python: str | None = None

    def __post_init__(self) -> None:
        for name, version in vars(self).items():
            if version is not None and not re.fullmatch(r"\d+(\.\d+)*", version):
                raise BadInputError(f"--{name} must be a version such as 3.5.9 or 17, got {version!r}")
        if self.spark is not None and "." not in self.spark:
            raise BadInputError(f"--spark must be a version such as 3.5 or 3.5.9, got {self.spark!r}")


INSTALLED = Versions()


def diagnose(folder: Path, given: Versions = INSTALLED) -> list[Finding]:
    """All checks; `folder` is where topics and checkpoints are going to be."""
    spark = given.spark or _version("pyspark")
    python = tuple(map(int, given.python.split("."))) if given.python else sys.version_info[:3]
    java = given.java
    checks: list[tuple[str, Callable[[], Finding]]] = [
        ("Spark", lambda: judge_spark(spark)),
        ("SPARK_HOME", lambda: judge_spark_home(os.environ.get("SPARK_HOME"), spark)),
        ("Java", lambda: check_java(spark) if java is None else judge_java(f'version "{java}"', spark)),
        ("Python", lambda: judge_python(python, spark)),
        ("packages", lambda: judge_packages({name: _version(name) for name in ("pyarrow", "pandas")})),
        ("memory", check_memory),
        ("cores", check_cores),
        ("ports", check_ports),
        ("disk", lambda: check_disk(folder)),
    ]
    return [_guarded(name, check) for name, check in checks]


def judge_spark(version: str | None) -> Finding:
    span = f"{next(iter(SUPPORTED))} to {NEWEST}"
    if version is None:
        return Finding("Spark", "problem", "pyspark is missing", "install sluice[spark]")
    if _line(version) not in SUPPORTED:
        return Finding("Spark", "problem", f"pyspark {version}", f"sluice works with pyspark {span}")
    if _line(version) != NEEDED_SPARK:
        advice = f"attach and submit work; pipelines ('sluice run --engine spark') need pyspark {NEEDED_SPARK}"
        return Finding("Spark", "warning", f"pyspark {version}", advice)
    return Finding("Spark", "ok", f"pyspark {version}")


def judge_spark_home(home: str | None, spark: str | None) -> Finding:
    """`sluice submit` runs the Spark of SPARK_HOME where it is set, and pyspark must fit it."""
    if not home:
        return Finding("SPARK_HOME", "ok", "not set")
    jars = [
        re.fullmatch(r"spark-core_[\d.]+-([\d.]+\d)\.jar", path.name) for path in Path(home, "jars").glob("spark-*")
    ]
    version = next((found[1] for found in jars if found), None)
    if version is None:
        return Finding("SPARK_HOME", "problem", f"no Spark in {home}", "set it to the folder of a Spark, or unset it")
    if _line(version) not in SUPPORTED:
        return Finding("SPARK_HOME", "problem", f"Spark {version}", judge_spark(version).advice)
    if spark is not None and _line(version) != _line(spark):
        advice = f"pyspark is {spark}: install pyspark {_line(version)}, or unset SPARK_HOME"
        return Finding("SPARK_HOME", "problem", f"Spark {version}", advice)
    return Finding("SPARK_HOME", "ok", f"Spark {version}")


def check_java(spark: str | None) -> Finding:
    problem = java_home_problem()
    if problem:
        return Finding("Java", "problem", "none", problem)
    try:
        said = subprocess.run(
            [java_command(), "-version"], capture_output=True, text=True, timeout=JAVA_PATIENCE_S, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("Java", "problem", "does not start", f"{java_command()} -version: {error}")
    return judge_java(said, spark)


def judge_java(said: str, spark: str | None = None) -> Finding:
    """From what `java -version` prints, for this version of Spark."""
    name, fitting = f"Spark {_known_line(spark)}", SUPPORTED[_known_line(spark)].java
    listed = f"Java {', '.join(map(str, fitting[:-1]))} or {fitting[-1]}"
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said)
    if not found:
        first = said.strip().splitlines()[0] if said.strip() else "nothing"
        return Finding("Java", "problem", first, f"java -version names no version; install {listed}")
    major = int(found.group(1)) if found.group(1) != "1" else int(found.group(2) or 0)
    if major < fitting[0]:
        return Finding("Java", "problem", f"Java {major}", f"{name} needs {listed}, on the PATH or in JAVA_HOME")
    if major not in fitting:
        return Finding("Java", "warning", f"Java {major}", f"{name} is released for {listed}")
    return Finding("Java", "ok", f"Java {major}")


def judge_python(version: tuple[int, ...], spark: str | None = None) -> Finding:
    found, line = ".".join(map(str, version)), _known_line(spark)
    for who, oldest in (("sluice", OLDEST_PYTHON), (f"Spark {line}", SUPPORTED[line].oldest_python)):
        if version[:2] < oldest:
            return Finding("Python", "problem", found, f"{who} needs Python {'.'.join(map(str, oldest))} or newer")
    return Finding("Python", "ok", found)


def judge_packages(versions: Mapping[str, str | None]) -> Finding:
    """Those that pipelines and topics need; `attach` needs none of them."""
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        advice = "attach does without; install sluice[spark] for pipelines and topics"
        return Finding("packages", "warning", f"{' and '.join(missing)} missing", advice)
    if int((versions.get("pandas") or "0").split(".")[0]) >= 3:
        return Finding("packages", "problem", f"pandas {versions['pandas']}", "PySpark needs pandas below 3")
    return Finding("packages", "ok", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _line(version: str) -> str:
    """3.5.9 -> 3.5"""
    return ".".join(version.split(".")[:2])


def _known_line(version: str | None) -> str:
    """The line to judge by: the newest one where Spark is missing or unknown."""
    line = _line(version or NEWEST)
    return line if line in SUPPORTED else NEWEST


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
