"""The kinds of cluster that can be started here, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice.spark.cluster import standalone, yarn
from sluice.spark.cluster.kubernetes import cluster as kubernetes
from sluice.spark.cluster.plan import ClusterState


@dataclass(frozen=True)
class ClusterKind:
    """How to start one, and which variables a job needs to use it."""

    up: Callable[..., ClusterState]
    environment: Callable[[ClusterState], Mapping[str, str]]


KINDS = {
    "standalone": ClusterKind(standalone.up, lambda _: {}),
    "yarn": ClusterKind(yarn.up, yarn.environment),
    "kubernetes": ClusterKind(kubernetes.up, kubernetes.environment),
}


def job_environment(state: ClusterState) -> Mapping[str, str]:
    return KINDS[state.kind].environment(state)
