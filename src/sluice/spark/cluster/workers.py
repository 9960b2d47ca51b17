"""Workers as the cluster's own manager counts them; a broker counts as its own worker while it answers."""

from __future__ import annotations

import json
import socket
import struct
import urllib.request
from collections.abc import Callable
from typing import Any

from sluice.spark.cluster.kubernetes.admin import ready_nodes
from sluice.spark.cluster.plan import ClusterState

ANSWER_TIMEOUT_S = 5.0
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""Kafka's request for the versions of its protocol: length, its number, its version, a running number, no client id."""


def alive_workers(state: ClusterState) -> list[str]:
    """Names of the workers the manager counts as alive; none while it does not answer."""
    return counted_workers(state) or []


def counted_workers(state: ClusterState) -> list[str] | None:
    """The same, null while it does not answer: a cluster may be without workers."""
    try:
        return _QUESTIONS[state.kind](state)
    except (OSError, ValueError, KeyError):
        return None


def _asked(state: ClusterState, path: str) -> Any:
    with urllib.request.urlopen(f"{state.web_url}{path}", timeout=ANSWER_TIMEOUT_S) as answer:
        return json.load(answer)


def _of_master(state: ClusterState) -> list[str]:
    return [worker["id"] for worker in _asked(state, "/json/")["workers"] if worker["state"] == "ALIVE"]


def _of_resource_manager(state: ClusterState) -> list[str]:
    nodes = _asked(state, "/ws/v1/cluster/nodes")["nodes"] or {}
    return [node["id"] for node in nodes.get("node", ()) if node["state"] == "RUNNING"]


def _of_broker(state: ClusterState) -> list[str]:
    host, _, port = state.master_url.rpartition(":")
    with socket.create_connection((host, int(port)), ANSWER_TIMEOUT_S) as connection:
        connection.sendall(API_VERSIONS)
        return ["broker"] if connection.recv(4) else []


_QUESTIONS: dict[str, Callable[[ClusterState], list[str]]] = {
    "standalone": _of_master,
    "yarn": _of_resource_manager,
    "kubernetes": ready_nodes,
    "kafka": _of_broker,
}
