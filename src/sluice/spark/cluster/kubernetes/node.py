"""A node of a small Kubernetes: registers itself, runs the executor pods bound to it as processes, and reports them.

python -m sluice.spark.cluster.kubernetes.node NAME SLOTS MEMORY_MB KUBECONFIG FOLDER MARK

It does what a kubelet does for one container per pod. While the API server is away, executors run on.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType

from sluice.spark.cluster.kubernetes import pods
from sluice.spark.cluster.kubernetes.access import HOST, read_client
from sluice.spark.cluster.kubernetes.api import STRATEGIC_MERGE, Api, ApiError, Json
from sluice.spark.cluster.processes import end_with_parent
from sluice.spark.session import java_command

LOOK_S = 0.3
HEARTBEAT_S = 2.0
KILL_AFTER_S = 2.0
"""After SIGTERM, when the time a pod had to end is over."""
ONLY_EXECUTORS = "this cluster runs executors only: start the driver yourself, in client deploy mode"


@dataclass
class RunningPod:
    """A pod's process, and when it is to be asked harder to end."""

    process: subprocess.Popen[bytes]
    asked: bool = False
    terminate_s: float = float("inf")
    kill_s: float = float("inf")

    def stop(self, *, decommission: bool, grace_s: float) -> None:
        """Ask once; with `decommission` the executor first hands its blocks on, as long as the grace lasts."""
        if self.asked:
            return
        self.asked, now_s = True, time.monotonic()
        self.terminate_s = now_s + grace_s if decommission else now_s
        self.kill_s = now_s + grace_s + KILL_AFTER_S
        if decommission:
            self.process.send_signal(signal.SIGPWR)

    def insist(self) -> None:
        now_s = time.monotonic()
        if now_s >= self.kill_s:
            self.process.kill()
        elif now_s >= self.terminate_s:
            self.process.terminate()
            self.terminate_s = float("inf")


class Node:
    def __init__(self, name: str, slots: int, memory_mb: int, api: Api, folder: Path, mark: str) -> None:
        self._name = name
        self._capacity = {"cpu": str(slots), "memory": f"{memory_mb}Mi", "pods": "110"}
        self._api = api
        self._folder = folder
        self._mark = mark
        self._running: dict[str, RunningPod] = {}
        self._heartbeat_s = 0.0

    def run(self) -> None:
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        ended: list[int] = []

        def end(received: int, _: FrameType | None) -> None:
            ended.append(received)

        signal.signal(signal.SIGTERM, end)
        while not ended:
            try:
                self._look()
            except OSError as error:
                print(f"the API server does not answer: {error}", flush=True)
            for running in self._running.values():
                running.insist()
            time.sleep(LOOK_S)
        for running in self._running.values():
            running.process.terminate()

    def _look(self) -> None:
        if time.monotonic() - self._heartbeat_s > HEARTBEAT_S:
            self._report_ready()
            self._heartbeat_s = time.monotonic()
        listed = self._api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self._name}")["items"]
        here = {pod["metadata"]["uid"]: pod for pod in listed}
        for uid, pod in here.items():
            try:
                self._follow(uid, pod)
            except ApiError as error:  # it may have been deleted meanwhile
                print(f"{pods.name_of(pod)}: {error}", flush=True)
        for uid in [uid for uid in self._running if uid not in here]:
            # deleted by force: nobody waits for it
            self._running[uid].process.kill()
            self._running.pop(uid).process.wait()

    def _report_ready(self) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "NodeReady",
            "message": "executors run as processes",
            "lastHeartbeatTime": _now(),
        }
        status = {
            "conditions": [ready],
            "capacity": self._capacity,
            "allocatable": self._capacity,
            "addresses": [{"type": "InternalIP", "address": HOST}],
        }
        path = f"/api/v1/nodes/{self._name}"
        try:
            self._api.patch(f"{path}/status", {"status": status}, STRATEGIC_MERGE)
        except ApiError as error:
            if error.code != 404:
                raise
            label = {"kubernetes.io/hostname": self._name}
            self._api.create("/api/v1/nodes", {"metadata": {"name": self._name, "labels": label}})
            self._api.patch(f"{path}/status", {"status": status}, STRATEGIC_MERGE)

    def _follow(self, uid: str, pod: Json) -> None:
        running = self._running.get(uid)
        if pods.is_deleted(pod):
            self._end(uid, pod, running)
            return
        phase = pod["status"]["phase"]
        if running is None and phase == "Pending":
            running = self._begin(uid, pod)
        if running is None or phase in ("Succeeded", "Failed"):
            return
        if (code := running.process.poll()) is not None:
            self._report(pod, pods.ended(pod, code))
            print(f"{pods.name_of(pod)} ended with {code}", flush=True)
        elif phase == "Pending":
            self._report(pod, pods.running(pod, _now()))

    def _begin(self, uid: str, pod: Json) -> RunningPod | None:
        if not pods.is_executor(pod):
            self._report(pod, pods.refused(pod, ONLY_EXECUTORS))
            return None
        import pyspark

        folder = self._folder / pods.name_of(pod)
        for volume in [folder, *pods.volumes(pod, folder)]:
            volume.mkdir(parents=True, exist_ok=True)
        spark_home = Path(pyspark.__file__).parent
        own = pods.variables(pod, folder)
        search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        with open(self._folder / f"{pods.name_of(pod)}.log", "wb") as log:
            process = subprocess.Popen(
                pods.command(pod, own, java=java_command(), spark_home=spark_home, mark=self._mark),
                env={**os.environ, "PATH": search, **own, "SPARK_HOME": str(spark_home)},
                cwd=folder,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )
        self._running[uid] = RunningPod(process)
        print(f"{pods.name_of(pod)} runs as process {process.pid}", flush=True)
        return self._running[uid]

    def _end(self, uid: str, pod: Json, running: RunningPod | None) -> None:
        if running is not None and running.process.poll() is None:
            running.stop(decommission=pods.is_decommissioned_first(pod), grace_s=pods.grace_s(pod))
            return
        self._api.delete(pods.pod_path(pod), grace_s=0)
        self._running.pop(uid, None)
        shutil.rmtree(self._folder / pods.name_of(pod), ignore_errors=True)
        print(f"{pods.name_of(pod)} is deleted", flush=True)

    def _report(self, pod: Json, status: Json) -> None:
        self._api.patch(f"{pods.pod_path(pod)}/status", status, STRATEGIC_MERGE)


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    name, slots, memory_mb, client, folder, mark = sys.argv[1:]
    Node(name, int(slots), int(memory_mb), read_client(Path(client)), Path(folder), mark).run()
