"""An executor's pod as a process of this machine: its command, its variables, and what is reported of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sluice.spark.cluster.kubernetes.access import HOST
from sluice.spark.cluster.kubernetes.api import Json

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
JAVA_OPTION = "SPARK_JAVA_OPT_"
DEFAULT_GRACE_S = 30


def name_of(pod: Json) -> str:
    return str(pod["metadata"]["name"])


def pod_path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{name_of(pod)}"


def is_executor(pod: Json) -> bool:
    return bool(pod["metadata"].get("labels", {}).get("spark-role") == "executor")


def is_deleted(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def grace_s(pod: Json) -> int:
    """How long a deleted pod may take to end."""
    return int(pod["metadata"].get("deletionGracePeriodSeconds", DEFAULT_GRACE_S))


def is_decommissioned_first(pod: Json) -> bool:
    """Spark's pods have a hook before they are stopped if `spark.decommission.enabled` is true."""
    return "preStop" in _container(pod).get("lifecycle", {})


def variables(pod: Json, folder: Path) -> dict[str, str]:
    """The container's, with its volumes in `folder`: a process sees the paths of this machine."""
    container = _container(pod)
    fields = {"status.podIP": HOST, "metadata.name": name_of(pod), "spec.nodeName": pod["spec"].get("nodeName", "")}
    found: dict[str, str] = {}
    for variable in container.get("env", ()):
        field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        found[variable["name"]] = variable.get("value", fields.get(field, ""))
    for mount in container.get("volumeMounts", ()):
        inside, outside = mount["mountPath"], str(folder / mount["name"])
        found = {name: value.replace(inside, outside) for name, value in found.items()}
    return found


def volumes(pod: Json, folder: Path) -> list[Path]:
    return [folder / mount["name"] for mount in _container(pod).get("volumeMounts", ())]


def command(pod: Json, variables: Mapping[str, str], *, java: str, spark_home: Path, mark: str) -> list[str]:
    """What the entry point of Spark's own image runs."""
    numbered = sorted((int(name.removeprefix(JAVA_OPTION)), name) for name in variables if name.startswith(JAVA_OPTION))
    classes = [path for path in (variables.get("SPARK_CLASSPATH"), f"{spark_home}/jars/*") if path]
    arguments = {
        "--driver-url": variables["SPARK_DRIVER_URL"],
        "--executor-id": variables["SPARK_EXECUTOR_ID"],
        "--cores": variables["SPARK_EXECUTOR_CORES"],
        "--app-id": variables["SPARK_APPLICATION_ID"],
        "--hostname": HOST,
        "--resourceProfileId": variables.get("SPARK_RESOURCE_PROFILE_ID", "0"),
        "--podName": name_of(pod),
    }
    return [
        java,
        *(variables[name] for _, name in numbered),
        f"-Xmx{variables['SPARK_EXECUTOR_MEMORY']}",
        f"-Dsluice.cluster={mark}",
        "-cp",
        ":".join(classes),
        BACKEND,
        *(word for pair in arguments.items() for word in pair),
    ]


def running(pod: Json, began: str) -> Json:
    return _status(pod, "Running", {"running": {"startedAt": began}}, ready=True)


def ended(pod: Json, exit_code: int) -> Json:
    phase = "Succeeded" if exit_code == 0 else "Failed"
    # a process ended by a signal has the number of a shell
    code = exit_code if exit_code >= 0 else 128 - exit_code
    return _status(pod, phase, {"terminated": {"exitCode": code}}, ready=False)


def refused(pod: Json, reason: str) -> Json:
    found = _status(pod, "Failed", {"terminated": {"exitCode": 1, "message": reason}}, ready=False)
    return {"status": {**found["status"], "reason": "NotAnExecutor", "message": reason}}


def _status(pod: Json, phase: str, state: Json, *, ready: bool) -> Json:
    container = _container(pod)
    image = container.get("image", "")
    status = {
        "name": container["name"],
        "ready": ready,
        "restartCount": 0,
        "image": image,
        "imageID": "",
        "state": state,
    }
    conditions = [{"type": kind, "status": str(ready)} for kind in ("ContainersReady", "Ready")]
    return {
        "status": {
            "phase": phase,
            "podIP": HOST,
            "hostIP": HOST,
            "conditions": conditions,
            "containerStatuses": [status],
        }
    }


def _container(pod: Json) -> Json:
    """Spark's is the first, whatever a template adds."""
    found: Json = pod["spec"]["containers"][0]
    return found
