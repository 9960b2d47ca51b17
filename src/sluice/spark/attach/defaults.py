"""What `attach` chooses for settings that were not given, each with its reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_EXECUTORS = 4
"""Where nothing tells how many the cluster may give."""
INTERVAL_S = 10.0
SHORTEST_INTERVAL_S = 5.0
TRIGGERS_PER_INTERVAL = 2


@dataclass(frozen=True)
class DefaultChoice:
    """A value and why it was chosen."""

    what: str
    value: Any
    why: str
    is_setting: bool = False
    """Of the attachment; the others are found, not set."""


def choose_defaults(
    asked: Mapping[str, Any],
    master: str,
    settings: Mapping[str, str],
    present: int,
    triggers_s: Sequence[float | None],
) -> list[DefaultChoice]:
    """What is chosen for settings that were not given, by the session, its executors and its running queries."""
    choices = [choose_cluster_manager(master), find_executor_size(master, settings), choose_release(settings)]
    if "max_executors" not in asked:
        least = max(asked["min_executors"], asked.get("initial_executors", 1))
        choices.append(choose_max_executors(master, settings, present, least))
    if "interval_s" not in asked:
        choices.append(choose_interval(triggers_s))
    return choices


def cluster_manager(master: str) -> str:
    for start, name in (("spark://", "standalone"), ("yarn", "YARN"), ("k8s://", "Kubernetes")):
        if master.startswith(start):
            return name
    return master.partition("[")[0]


def choose_cluster_manager(master: str) -> DefaultChoice:
    return DefaultChoice("cluster_manager", cluster_manager(master), f"the master is {master}")


def find_executor_size(master: str, settings: Mapping[str, str]) -> DefaultChoice:
    """What every executor has: of a running application it cannot be changed, only their number."""
    cores, memory = settings.get("spark.executor.cores"), settings.get("spark.executor.memory", "1g")
    whole_worker = cluster_manager(master) == "standalone" and cores is None
    size = "all cores of a worker" if whole_worker else f"{cores or 1} cores"
    why = "spark.executor.cores and spark.executor.memory, or Spark's defaults; fixed since the application began"
    return DefaultChoice("executor_size", f"{size}, {memory}", why)


def choose_max_executors(master: str, settings: Mapping[str, str], present: int, least: int) -> DefaultChoice:
    """As many as the cluster gives, as far as that is known; never fewer than `least`."""
    count, why = _most_executors(master, settings, present)
    if count < least:
        count, why = least, "as many as the fewest"
    return DefaultChoice("max_executors", count, why, is_setting=True)


def _most_executors(master: str, settings: Mapping[str, str], present: int) -> tuple[int, str]:
    cores, cores_each = settings.get("spark.cores.max"), settings.get("spark.executor.cores")
    if cluster_manager(master) == "standalone" and cores_each:
        if cores:
            return int(cores) // int(cores_each), f"spark.cores.max {cores} / spark.executor.cores {cores_each}"
        if present > MOST_EXECUTORS:
            return present, "without spark.cores.max the master gives all its cores, and so many executors are here"
    for key in ("spark.dynamicAllocation.maxExecutors", "spark.executor.instances"):
        if (found := settings.get(key, "")).isdigit() and int(found) > MOST_EXECUTORS:
            return int(found), key
    return MOST_EXECUTORS, "the default; set max_executors to what the job may cost"


def choose_interval(triggers_s: Sequence[float | None]) -> DefaultChoice:
    """Two triggers of the slowest query: a window without a batch tells nothing. None: a query without an interval."""
    slowest_s = max((one for one in triggers_s if one is not None), default=None)
    if slowest_s is None:
        why = "the default; no query with a trigger interval runs"
        return DefaultChoice("interval_s", INTERVAL_S, why, is_setting=True)
    interval_s = max(SHORTEST_INTERVAL_S, TRIGGERS_PER_INTERVAL * slowest_s)
    why = f"{TRIGGERS_PER_INTERVAL} triggers of {slowest_s:g} s, {SHORTEST_INTERVAL_S:g} s at least"
    return DefaultChoice("interval_s", interval_s, why, is_setting=True)


def choose_release(settings: Mapping[str, str]) -> DefaultChoice:
    if settings.get("spark.decommission.enabled") == "true":
        return DefaultChoice("release", "decommission", "spark.decommission.enabled is true")
    return DefaultChoice("release", "kill", "spark.decommission.enabled is not true: between batches only")
