"""What a session must look like to be scaled; each refusal says what to set. Pure, but for reading the session."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sluice.errors import BadInputError
from sluice.spark.attach.log import line
from sluice.spark.internals import MissingCallError, has_ended, is_connect, is_session, is_unanswered, root_cause
from sluice.spark.internals.kubernetes import denied_pod_verbs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("sluice")
KEYS = (
    "spark.dynamicAllocation.enabled",
    "spark.streaming.dynamicAllocation.enabled",
    "spark.dynamicAllocation.maxExecutors",
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.cores.max",
    "spark.decommission.enabled",
    "spark.storage.decommission.enabled",
)
POD_VERBS = ("create", "delete", "list", "watch")
"""What scaling needs."""
_IN_PROCESS = re.compile(r"local(\[.*\])?\Z")


def read_session(spark: SparkSession) -> tuple[str, dict[str, str]]:
    """The master and those of its settings that matter here; what is no session of a running driver is refused."""
    if not is_session(spark):
        raise BadInputError(f"attach needs a SparkSession, got {spark!r}")
    if is_connect(spark):
        raise BadInputError(
            "attach needs the driver's own session, got one of Spark Connect; call it in the program of the server"
        )
    if has_ended(spark):
        raise BadInputError("attach needs a running session, got one that has been stopped")
    context: Any = spark.sparkContext
    configured: Callable[..., str | None] = context.getConf().get
    found = {key: value for key in KEYS if (value := configured(key, None)) is not None}
    # Spark takes True and TRUE for true
    return str(context.master), {
        key: value.strip().lower() if key.endswith(".enabled") else value for key, value in found.items()
    }


def check_settings(master: str, settings: Mapping[str, str], max_executors: int) -> list[str]:
    """Refuse what cannot be scaled; what is allowed but costs something is returned, a sentence each."""
    for key in ("spark.dynamicAllocation.enabled", "spark.streaming.dynamicAllocation.enabled"):
        if settings.get(key) == "true":
            raise BadInputError(
                f"{key} is true: two controllers would fight over the executors; set {key}=false to attach"
            )
    if _IN_PROCESS.match(master):
        raise BadInputError(
            f"master is {master!r}, which has no executors to add; attach works on standalone (spark://...), "
            "YARN and Kubernetes masters"
        )
    advice = _check_standalone(settings, max_executors) if master.startswith("spark://") else []
    if settings.get("spark.decommission.enabled") != "true":
        advice.append(
            "spark.decommission.enabled is not true: executors are released between batches only, "
            "and cached blocks they hold are lost"
        )
    elif settings.get("spark.storage.decommission.enabled") != "true":
        advice.append(
            "spark.storage.decommission.enabled is not true: an executor that leaves within a batch takes its shuffle "
            "data with it, and Spark computes that part again"
        )
    return advice


def check_rights(spark: SparkSession, master: str) -> None:
    """Refuse a driver that Kubernetes does not let scale: Spark would try in vain, and say so in its log only."""
    if not master.startswith("k8s://"):
        return
    try:
        denied = denied_pod_verbs(spark, POD_VERBS)
    except Exception as error:  # an API server that is away for a moment forbids nothing
        if not (is_unanswered(error) or isinstance(error, MissingCallError)):
            raise
        log.warning("%s", line({"event": "advice", "detail": f"rights are not known: {root_cause(error)}"}))
        return
    if denied:
        raise BadInputError(
            f"Kubernetes does not let the driver's service account {', '.join(denied)} pods in its namespace; "
            "grant it with a Role as in examples/kubernetes/rbac.yaml"
        )


def _check_standalone(settings: Mapping[str, str], max_executors: int) -> list[str]:
    """A standalone master gives an application `spark.cores.max` cores, for all its life and from its start."""
    most_cores, cores_each = settings.get("spark.cores.max"), settings.get("spark.executor.cores")
    if cores_each is None:
        return [
            "spark.executor.cores is not set: on a standalone master an executor takes all cores of its worker, "
            "so there can be no more executors than workers"
        ]
    if most_cores is not None and int(most_cores) < max_executors * int(cores_each):
        raise BadInputError(
            f"spark.cores.max is {most_cores}: no more than {int(most_cores) // int(cores_each)} executors of "
            f"{cores_each} cores fit into it, but max_executors is {max_executors}; "
            f"set spark.cores.max={max_executors * int(cores_each)} or leave it out"
        )
    return []
