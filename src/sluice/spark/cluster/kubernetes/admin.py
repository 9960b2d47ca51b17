"""A running small Kubernetes through the eyes of somebody who may do everything."""

from __future__ import annotations

from pathlib import Path

from sluice.spark.cluster.kubernetes.access import read_client
from sluice.spark.cluster.kubernetes.api import Api, Json
from sluice.spark.cluster.plan import ClusterState

ADMIN_FILE = "admin.kubeconfig"
"""In the folder of a job's configuration; for KUBECONFIG."""


def admin_of(state: ClusterState) -> Api:
    assert state.conf_dir is not None
    return read_client(Path(state.conf_dir) / ADMIN_FILE)


def ready_nodes(state: ClusterState) -> list[str]:
    """Names of the nodes the API server counts as ready; none while it does not answer."""
    try:
        found = admin_of(state).get("/api/v1/nodes")["items"]
    except (OSError, ValueError):
        return []
    return [node["metadata"]["name"] for node in found if _is_ready(node)]


def _is_ready(node: Json) -> bool:
    conditions = node["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
