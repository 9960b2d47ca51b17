"""A small standalone cluster on this machine, from the installed pyspark: one master, some workers.

A supervisor process owns them. They are told by the kernel to end when it does (Linux: parent-death signal), so nothing
outlives it, not even when it is killed. The supervisor runs until `down` ends it; a state file says where it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sluice.control.memory import write_atomically
from sluice.engines.spark.session import java_home_problem
from sluice.errors import BadInputError, SluiceError

STATE_FILE = "cluster.json"
START_TIMEOUT_S = 60.0
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class ClusterState:
    """What `up` left behind for `status`, `down` and the user's program."""

    supervisor_pid: int
    master_url: str
    web_url: str
    workers: int
    slots: int
    memory_mb: int
    process_ids: dict[str, int]


def default_home() -> Path:
    return Path(os.environ.get("SLUICE_CLUSTER_HOME", Path.home() / ".sluice" / "cluster"))


def read_state(home: Path) -> ClusterState | None:
    """The running cluster, or None; a state file whose supervisor is gone does not count."""
    try:
        state = ClusterState(**json.loads((home / STATE_FILE).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return state if is_alive(state.supervisor_pid) else None


def up(home: Path, *, workers: int, slots: int, memory_mb: int = 1024) -> ClusterState:
    """Start a cluster and wait until all its workers have joined."""
    for name, value in (("workers", workers), ("slots", slots)):
        if value < 1:
            raise BadInputError(f"{name} must be at least 1, got {value}")
    if memory_mb < 512:
        raise BadInputError(f"memory_mb must be at least 512, got {memory_mb}")
    if problem := java_home_problem():
        raise BadInputError(problem)
    if (running := read_state(home)) is not None:
        raise BadInputError(f"a cluster is running already at {running.master_url}; 'sluice cluster down' ends it")
    home.mkdir(parents=True, exist_ok=True)
    (home / STATE_FILE).unlink(missing_ok=True)
    command = [sys.executable, "-m", __name__, str(home), str(workers), str(slots), str(memory_mb)]
    with open(home / "supervisor.log", "wb") as output:
        supervisor = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        state = read_state(home)
        if state is not None and len(alive_workers(state)) == workers:
            return state
        if supervisor.poll() is not None:
            break
        time.sleep(0.2)
    _end(supervisor.pid)
    raise SluiceError(f"the cluster did not start within {START_TIMEOUT_S:g} s; see {home / 'supervisor.log'}")


def down(home: Path) -> bool:
    """End the cluster; False if none runs."""
    state = read_state(home)
    if state is None:
        return False
    _end(state.supervisor_pid)
    (home / STATE_FILE).unlink(missing_ok=True)
    return True


def alive_workers(state: ClusterState) -> list[dict[str, Any]]:
    """Workers the master counts as alive; none while it does not answer."""
    try:
        with urllib.request.urlopen(f"{state.web_url}/json/", timeout=5) as answer:
            found = json.load(answer)["workers"]
    except (OSError, ValueError, KeyError):
        return []
    return [worker for worker in found if worker["state"] == "ALIVE"]


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, PermissionError):
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def _end(process_id: int, patience_s: float = 10.0) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process_id, signal.SIGTERM)
        deadline_s = time.monotonic() + patience_s
        while is_alive(process_id) and time.monotonic() < deadline_s:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process_id, os.WNOHANG)
            time.sleep(0.1)
        os.kill(process_id, signal.SIGKILL)


class Supervisor:
    """Starts the processes, writes the state, and waits to be told to end."""

    def __init__(self, home: Path, workers: int, slots: int, memory_mb: int) -> None:
        self._home = home
        self._workers = workers
        self._slots = slots
        self._memory_mb = memory_mb
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def run(self) -> None:
        ended: list[int] = []
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda received, _: ended.append(received))
        port, web_port = _free_port(), _free_port()
        master_url = f"spark://127.0.0.1:{port}"
        try:
            self._start("master", "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", web_port)
            for number in range(self._workers):
                self._start_worker(f"worker-{number}", master_url)
            state = ClusterState(
                supervisor_pid=os.getpid(),
                master_url=master_url,
                web_url=f"http://127.0.0.1:{web_port}",
                workers=self._workers,
                slots=self._slots,
                memory_mb=self._memory_mb,
                process_ids={name: child.pid for name, child in self._children.items()},
            )
            write_atomically(self._home / STATE_FILE, json.dumps(asdict(state)).encode())
            while not ended and self._children["master"].poll() is None:
                time.sleep(0.2)
        finally:
            self._end_all()

    def _start_worker(self, name: str, master_url: str) -> None:
        self._start(
            name,
            "worker.Worker",
            "--host",
            "127.0.0.1",
            "--port",
            _free_port(),
            "--webui-port",
            _free_port(),
            "--cores",
            self._slots,
            "--memory",
            f"{self._memory_mb * self._slots}m",
            "--work-dir",
            self._home / "work" / name,
            master_url,
        )

    def _start(self, name: str, kind: str, *arguments: object) -> None:
        import pyspark

        spark_home = Path(pyspark.__file__).parent
        command = [str(spark_home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *map(str, arguments)]
        environment = {**os.environ, "SPARK_HOME": str(spark_home), "SPARK_DAEMON_MEMORY": "256m"}
        log = open(self._home / f"{name}.log", "wb")  # noqa: SIM115 - the child keeps it
        self._children[name] = subprocess.Popen(
            command, stdout=log, stderr=log, env=environment, preexec_fn=_end_with_parent
        )
        log.close()

    def _end_all(self) -> None:
        for child in self._children.values():
            child.terminate()
        for child in self._children.values():
            try:
                child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    Supervisor(Path(sys.argv[1]), *map(int, sys.argv[2:])).run()
