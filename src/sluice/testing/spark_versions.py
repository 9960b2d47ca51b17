"""Environments with sluice's core and one version of pyspark, and a step load in each.

They are kept in a cache folder: pyspark is 300 to 430 MB and comes as a source distribution.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluice.errors import SluiceError
from sluice.spark.cluster.kinds import job_environment
from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.cluster.plan import ClusterState
from sluice.spark.cluster.supervisor import OWNER

VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The last release of every line that `attach` supports."""
STEPS_PATIENCE_S = 180.0
DEFAULT_CACHE = Path.home() / ".cache" / "sluice-versions"


def make_environment(cache: Path, repository: Path, version: str, python: str = sys.executable) -> Path:
    """The Python of an environment with this pyspark and sluice from its source; made if it is not there."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    name = running if python == sys.executable else Path(python).name
    folder = cache / f"pyspark-{version}-on-{name}"
    return install(folder, [f"pyspark=={version}", "--editable", str(repository)], python)


def install(folder: Path, what: Sequence[str], python: str, *options: str) -> Path:
    """The Python of the environment in this folder, which is made if it is not there, with these packages in it."""
    uv = Path(sys.executable).with_name("uv")
    command = str(uv) if uv.exists() else shutil.which("uv")
    if command is None:
        raise SluiceError("uv is missing; 'make' installs it")
    executable = folder / "bin" / "python"
    if not executable.exists():
        _run([command, "venv", "--quiet", "--python", python, str(folder)])
    _run([command, "pip", "install", "--quiet", "--python", str(executable), *options, *what])
    return executable


def run_steps(python: Path, root: Path, mode: str, cluster: ClusterState) -> dict[str, Any]:
    """What `step_load.steps` saw with this Python on a cluster of its own Spark."""
    root.mkdir(parents=True)
    command = [str(python), "-m", "sluice.testing.step_load.steps", str(root), cluster.master_url, mode]
    _run(command, job_environment(cluster), STEPS_PATIENCE_S)
    found: dict[str, Any] = json.loads((root / "result.json").read_text())
    return found


@contextmanager
def cluster_of(python: Path, home: Path, kind: str) -> Iterator[ClusterState]:
    """A cluster of this Python's Spark, for any number of jobs one after the other; it ends with this process."""
    sluice = [str(python.with_name("sluice")), "cluster"]
    chosen = [] if kind == "standalone" else [f"--{kind}"]
    _run([*sluice, "up", "--workers", "2", "--slots", "2", "--home", str(home), *chosen], {OWNER: str(os.getpid())})
    try:
        state = read_state(home)
        assert state is not None, f"no cluster at {home}"
        yield state
    finally:
        _run([*sluice, "down", "--home", str(home)])


def _run(command: list[str], variables: Mapping[str, str] | None = None, patience_s: float | None = None) -> str:
    """What it prints; what it says last is the message if it fails."""
    # neither this process's packages nor its Spark
    hidden = ("PYTHONPATH", "SPARK_HOME", "VIRTUAL_ENV")
    environment = {key: value for key, value in os.environ.items() if key not in hidden} | {**(variables or {})}
    what = f"{Path(command[0]).name} {' '.join(command[1:4])}"
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment,
            timeout=patience_s,
            check=False,
            # a signal to this process' group is not for a job that has begun
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise SluiceError(f"{what} did not end within {patience_s:g} s: {_last_lines(error.stderr)}") from error
    if done.returncode:
        raise SluiceError(f"{what} failed: {_last_lines(done.stderr)}")
    return done.stdout


def _last_lines(output: str | bytes | None) -> str:
    text = output.decode(errors="replace") if isinstance(output, bytes) else output or ""
    return " ".join([line.strip() for line in text.splitlines() if line.strip()][-3:])
