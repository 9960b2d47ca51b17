"""What Kubernetes does to the pods of a running query; each function returns when it is over."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.spark.cluster.kubernetes.access import NAMESPACE
from sluice.spark.cluster.kubernetes.admin import admin_of, ready_nodes
from sluice.spark.cluster.lifecycle import read_state
from sluice.spark.cluster.plan import ClusterState
from sluice.testing.step_load.executors import active_executors, executor_processes
from sluice.testing.step_load.job import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
FULL_S = 30.0
"""How long no node takes another pod."""
AWAY_S = 60.0


def evict_pod(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """Through the API that drains nodes; returns when Spark no longer counts the executor."""
    pod = _newest_pod(_running(home))
    name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    admin_of(_running(home)).post(f"{PODS}/{name}/eviction", eviction)
    return _wait_for_loss(spark, query, labels["spark-exec-id"])


def fill_cluster(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """No node takes pods, and one is deleted: its replacement stays pending until nodes take pods again."""
    state = _running(home)
    nodes = ready_nodes(state)
    pod = _newest_pod(state)
    began_s = time.monotonic()
    _set_schedulable(state, nodes, schedulable=False)
    try:
        admin_of(state).delete(f"{PODS}/{pod['metadata']['name']}")
        _wait_for_loss(spark, query, pod["metadata"]["labels"]["spark-exec-id"])
        wait_for(lambda: "Unschedulable" in _pending_reasons(state), query, "a pod that stays pending")
        time.sleep(FULL_S)
    finally:
        _set_schedulable(state, nodes, schedulable=True)
    return time.monotonic() - began_s


def take_api_server_away(spark: SparkSession, home: Path, query: StreamingQuery) -> float:
    """For a minute, with an executor lost at its beginning: nothing can replace it before the end."""
    state = _running(home)
    lost, process = max(executor_processes(spark.sparkContext.applicationId).items(), key=lambda one: int(one[0]))
    began_s = time.monotonic()
    # a supervisor that sleeps starts nothing anew
    os.kill(state.supervisor_pid, signal.SIGSTOP)
    try:
        os.kill(state.process_ids["apiserver"], signal.SIGKILL)
        os.kill(process, signal.SIGKILL)
        time.sleep(AWAY_S)
    finally:
        os.kill(state.supervisor_pid, signal.SIGCONT)
    wait_for(lambda: bool(ready_nodes(state)), query, "an API server")
    _wait_for_loss(spark, query, lost)
    return time.monotonic() - began_s


def _newest_pod(state: ClusterState) -> dict[str, Any]:
    found = admin_of(state).get(f"{PODS}?labelSelector=spark-role%3Dexecutor")["items"]
    running = [pod for pod in found if pod["status"]["phase"] == "Running"]
    newest: dict[str, Any] = max(running, key=lambda pod: int(pod["metadata"]["labels"]["spark-exec-id"]))
    return newest


def _pending_reasons(state: ClusterState) -> list[str]:
    found = admin_of(state).get(f"{PODS}?labelSelector=spark-role%3Dexecutor")["items"]
    conditions = [one for pod in found for one in pod["status"].get("conditions", ())]
    return [one["reason"] for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]


def _set_schedulable(state: ClusterState, nodes: list[str], *, schedulable: bool) -> None:
    for node in nodes:
        admin_of(state).patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None if schedulable else True}})


def _wait_for_loss(spark: SparkSession, query: StreamingQuery, executor_id: str) -> float:
    return wait_for(
        lambda: executor_id not in {one.id() for one in active_executors(spark)}, query, "a loss that shows"
    )


def _running(home: Path) -> ClusterState:
    state = read_state(home)
    assert state is not None, f"no cluster at {home}"
    return state
