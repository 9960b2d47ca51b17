"""Workers as the cluster's own manager counts them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

from sluice.spark.cluster.kubernetes.admin import ready_nodes
from sluice.spark.cluster.plan import ClusterState


def alive_workers(state: ClusterState) -> list[str]:
    """Names of the workers the manager counts as alive; none while it does not answer."""
    if state.kind == "kubernetes":
        return ready_nodes(state)
    path, names = _QUESTIONS[state.kind]
    try:
        with urllib.request.urlopen(f"{state.web_url}{path}", timeout=5) as answer:
            return names(json.load(answer))
    except (OSError, ValueError, KeyError):
        return []


def _of_master(answer: Any) -> list[str]:
    return [worker["id"] for worker in answer["workers"] if worker["state"] == "ALIVE"]


def _of_resource_manager(answer: Any) -> list[str]:
    nodes = answer["nodes"] or {}
    return [node["id"] for node in nodes.get("node", ()) if node["state"] == "RUNNING"]


_QUESTIONS: dict[str, tuple[str, Callable[[Any], list[str]]]] = {
    "standalone": ("/json/", _of_master),
    "yarn": ("/ws/v1/cluster/nodes", _of_resource_manager),
}
