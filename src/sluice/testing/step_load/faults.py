"""Processes of a cluster killed while a query runs; each function returns when the cluster has noticed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.cluster.standalone import alive_workers, read_state
from sluice.testing.step_load.executors import active_executors, executor_processes
from sluice.testing.step_load.job import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def kill_executor(spark: SparkSession, _home: Path, query: StreamingQuery) -> float:
    """Returns when Spark has noticed; seconds that took."""
    name, process = max(executor_processes(spark.sparkContext.applicationId).items(), key=lambda one: int(one[0]))
    os.kill(process, signal.SIGKILL)
    return _notice_loss(spark, query, {name})


def kill_worker(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """Of the workers the one with most executors; they end with it."""
    workers = [process for name, process in _processes(home).items() if name.startswith("worker")]
    children = {worker: _children(worker) for worker in workers}
    busiest = max(workers, key=lambda worker: len(children[worker]))
    here = executor_processes(spark.sparkContext.applicationId)
    os.kill(busiest, signal.SIGKILL)
    return _notice_loss(spark, query, {name for name, process in here.items() if process in children[busiest]})


def kill_master(_spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """The cluster's supervisor starts another one; returns when workers have found it."""
    killed = _processes(home)["master"]
    os.kill(killed, signal.SIGKILL)
    return wait_for(lambda: _processes(home)["master"] != killed and _alive_workers(home) > 0, query, "a new master")


def _notice_loss(spark: SparkSession, query: StreamingQuery, lost: set[str]) -> float:
    return wait_for(lambda: not lost & {one.id() for one in active_executors(spark)}, query, "a loss that shows")


def _children(process: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found += [int(entry.name)] if parent == process else []
    return found


def _processes(home: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((home / "cluster.json").read_text())["process_ids"]
    return found


def _alive_workers(home: Path) -> int:
    state = read_state(home)
    return len(alive_workers(state)) if state else 0


FAULTS: dict[str, Callable[[Any, Path, Any], float]] = {
    "executor": kill_executor,
    "worker": kill_worker,
    "master": kill_master,
}
