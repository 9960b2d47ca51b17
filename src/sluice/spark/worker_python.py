"""The Python that embedded Spark starts its processes with: `sluice-python -m MODULE ...`, quicker to its first call.

Besides the workers of tasks, which `worker_daemon` is for, Spark starts a Python process for every streaming source and
daemons for planning, and names their modules itself; each would compile pyspark from a zip of sources. Here they are
forked from a process that has it imported, or, if that one does not answer, import the installed pyspark. For anything
but a module it is plain Python.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sluice.spark.forkserver import run_as_program, run_in_child
from sluice.spark.worker_daemon import prefer_installed_pyspark

COMMAND = "sluice-python"
REPLACED = {"pyspark.daemon": "sluice.spark.worker_daemon"}


def command() -> str:
    """Path of this program; plain Python where it was not installed beside it."""
    beside = Path(sys.executable).with_name(COMMAND)
    return str(beside) if os.access(beside, os.X_OK) else sys.executable


def main() -> None:
    if len(sys.argv) < 3 or sys.argv[1] != "-m":
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    module, arguments = REPLACED.get(sys.argv[2], sys.argv[2]), sys.argv[3:]
    sys.path[0] = os.getcwd()
    prefer_installed_pyspark()
    code = run_in_child(module, arguments)
    if code is not None:
        sys.exit(code)
    run_as_program(module, arguments)
