"""Processes of a cluster killed while a query runs; each function returns when the cluster has noticed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.cluster.processes import is_alive, marked_processes
from sluice.spark.cluster.workers import alive_workers
from sluice.testing.step_load.executors import active_executors, executor_processes
from sluice.testing.step_load.job import wait_for
from sluice.testing.step_load.pod_faults import evict_pod, fill_cluster, take_api_server_away
from sluice.testing.step_load.preemption import lose_share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MASTERS = ("master", "resourcemanager", "apiserver")


def kill_executor(spark: SparkSession, _home: Path, query: StreamingQuery) -> float:
    """The youngest that has joined: Spark would not notice the loss of one that is still starting. Seconds it took."""
    joined = {one.id() for one in active_executors(spark)}
    here = executor_processes(spark.sparkContext.applicationId).items()
    name, process = max((one for one in here if one[0] in joined), key=lambda one: int(one[0]))
    os.kill(process, signal.SIGKILL)
    return _notice_loss(spark, query, {name})


def kill_worker(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """The process alone: a standalone worker's executors end with it, a NodeManager's when it counts as lost."""
    worker, processes = _choose_worker(spark, home)
    lost = _executors_among(spark, processes)
    os.kill(worker, signal.SIGKILL)
    return _notice_loss(spark, query, lost)


def kill_node(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """A worker with all it has started, as when its machine is lost."""
    worker, processes = _choose_worker(spark, home)
    lost = _executors_among(spark, processes)
    for process in [worker, *processes]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return _notice_loss(spark, query, lost)


def kill_master(_spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """The cluster's supervisor starts another one; returns when workers have found it."""
    name = next(name for name in _processes(home) if name in MASTERS)
    killed = _processes(home)[name]
    os.kill(killed, signal.SIGKILL)
    return wait_for(lambda: _processes(home)[name] != killed and _alive_workers(home) > 0, query, f"a new {name}")


def _choose_worker(spark: SparkSession, home: Path) -> tuple[int, list[int]]:
    """The worker with most executors among those without the application's master, and all it has started."""
    workers = [process for name, process in _processes(home).items() if name.rpartition("-")[2].isdigit()]
    started = {process: _descendants(process) for process in workers}
    masters = {*marked_processes("org.apache.spark.deploy.yarn.")}

    def rank(worker: int) -> tuple[bool, int]:
        return masters.isdisjoint(started[worker]), len(_executors_among(spark, started[worker]))

    chosen = max(filter(is_alive, started), key=rank)
    return chosen, started[chosen]


def _executors_among(spark: SparkSession, processes: list[int]) -> set[str]:
    here = executor_processes(spark.sparkContext.applicationId)
    return {name for name, process in here.items() if process in processes}


def _notice_loss(spark: SparkSession, query: StreamingQuery, lost: set[str]) -> float:
    assert lost, "no executor was lost: the fault tests nothing"
    return wait_for(lambda: not lost & {one.id() for one in active_executors(spark)}, query, "a loss that shows")


def _descendants(process: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [process]
    for parent in found:
        found += [child for child, of in parents.items() if of == parent]
    return found[1:]


def _processes(home: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((home / "cluster.json").read_text())["process_ids"]
    return found


def _alive_workers(home: Path) -> int:
    state = read_state(home)
    return len(alive_workers(state)) if state else 0


FAULTS: dict[str, Callable[[Any, Path, Any], float]] = {
    "executor": kill_executor,
    "worker": kill_worker,
    "node": kill_node,
    "master": kill_master,
    "share": lose_share,
    "eviction": evict_pod,
    "no-capacity": fill_cluster,
    "api-away": take_api_server_away,
}
