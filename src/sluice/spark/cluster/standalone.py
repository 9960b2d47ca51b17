"""A small standalone cluster on this machine, from the installed pyspark: one master, some workers.

A supervisor process owns them and holds a lock for as long as it lives, so whether a cluster runs is never guessed from
a process number. They end with it (Linux: parent-death signal); `down` ends what an earlier supervisor left where the
kernel has no such signal. A master that dies is started anew and finds its workers and
applications again in its recovery folder; a worker that dies stays dead, so that one can see what a job does then.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sluice.errors import BadInputError, SluiceError
from sluice.files import replace_file
from sluice.spark.causes import last_error
from sluice.spark.session import java_home_problem

STATE_FILE = "cluster.json"
LOCK_FILE = "supervisor.lock"
START_TIMEOUT_S = 60.0
RESTART_PAUSE_S = 1.0
LOCK_PATIENCE_S = 1.0
PR_SET_PDEATHSIG = 1
DAEMONS = "org.apache.spark.deploy."
_started: dict[int, subprocess.Popen[bytes]] = {}
"""Supervisors this process started: they outlive it, and it has to look after those that end before."""


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
    return _recorded(home) if _is_supervised(home) else None


def _recorded(home: Path) -> ClusterState | None:
    try:
        return ClusterState(**json.loads((home / STATE_FILE).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _is_supervised(home: Path) -> bool:
    with contextlib.suppress(FileNotFoundError), open(home / LOCK_FILE) as lock:
        return not _lock(lock.fileno())
    return False


def _lock(descriptor: int) -> bool:
    """Take the lock until the file is closed; False if somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def up(home: Path, *, workers: int, slots: int, memory_mb: int = 1024) -> ClusterState:
    """Start a cluster and wait until all its workers have joined; if one ends before, say why."""
    for name, value in (("workers", workers), ("slots", slots)):
        if value < 1:
            raise BadInputError(f"{name} must be at least 1, got {value}")
    if memory_mb < 512:
        raise BadInputError(f"memory_mb must be at least 512, got {memory_mb}")
    if problem := java_home_problem():
        raise BadInputError(problem)
    if (running := read_state(home)) is not None:
        raise BadInputError(f"a cluster is running already at {running.master_url}; 'sluice cluster down' ends it")
    down(home)
    home.mkdir(parents=True, exist_ok=True)
    for log in home.glob("*.log"):
        log.unlink()
    command = [sys.executable, "-m", __name__, str(home), str(workers), str(slots), str(memory_mb)]
    with open(home / "supervisor.log", "wb") as output:
        supervisor = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    _started[supervisor.pid] = supervisor
    state = _await_workers(home, supervisor, workers)
    if isinstance(state, ClusterState):
        return state
    _end(supervisor.pid)
    _started.pop(supervisor.pid).wait()
    raise SluiceError(f"the cluster did not start: {state}; the logs are in {home}")


def _await_workers(home: Path, supervisor: subprocess.Popen[bytes], workers: int) -> ClusterState | str:
    """The state of the complete cluster, or why it will not be complete."""
    joined = 0
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        if supervisor.poll() is not None:
            return _logged_error(home, "supervisor")
        state = read_state(home)
        if state is not None:
            joined = len(alive_workers(state))
            if joined == workers:
                return state
            for name, process in state.process_ids.items():
                if not is_alive(process):
                    return _logged_error(home, name)
        time.sleep(0.2)
    errors = [_logged_error(home, path.stem) for path in sorted(home.glob("*.log")) if path.stat().st_size]
    return "; ".join([f"{joined} of {workers} workers joined within {START_TIMEOUT_S:g} s", *errors])


def _logged_error(home: Path, name: str) -> str:
    """What a process of the cluster logged as its last error."""
    with contextlib.suppress(FileNotFoundError):
        return f"{name}: {last_error((home / f'{name}.log').read_text(errors='replace')) or 'ended without a message'}"
    return f"{name}: ended without a message"


def down(home: Path) -> bool:
    """End the cluster, or what is left of one whose supervisor was killed; False if there is none."""
    state = _recorded(home)
    if state is None:
        return False
    left = [process for process in state.process_ids.values() if _is_daemon(process)]
    supervised = _is_supervised(home)
    if supervised:
        _end(state.supervisor_pid)
    if (mine := _started.pop(state.supervisor_pid, None)) is not None:
        mine.wait()
    for process in left:
        _end(process)
    (home / STATE_FILE).unlink(missing_ok=True)
    return supervised or bool(left)


def alive_workers(state: ClusterState) -> list[dict[str, Any]]:
    """Workers the master counts as alive; none while it does not answer."""
    try:
        with urllib.request.urlopen(f"{state.web_url}/json/", timeout=5) as answer:
            workers = json.load(answer)["workers"]
    except (OSError, ValueError, KeyError):
        return []
    return [worker for worker in workers if worker["state"] == "ALIVE"]


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except (ProcessLookupError, PermissionError):
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def _is_daemon(process_id: int) -> bool:
    """Whether this process is one of Spark's daemons: its number may long be somebody else's."""
    command = subprocess.run(
        ["ps", "-o", "command=", "-p", str(process_id)], capture_output=True, text=True, check=False
    ).stdout
    return DAEMONS in command


def _end(process_id: int, patience_s: float = 10.0) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process_id, signal.SIGTERM)
        deadline_s = time.monotonic() + patience_s
        while is_alive(process_id) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        os.kill(process_id, signal.SIGKILL)


class Supervisor:
    """Starts the processes, writes the state, and runs until it gets a signal to end."""

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
        with self._alone():
            port, web_port = _free_port(), _free_port()
            master_url = f"spark://127.0.0.1:{port}"
            try:
                self._start_master(port, web_port)
                for number in range(self._workers):
                    self._start_worker(f"worker-{number}", master_url)
                self._record(master_url, web_port)
                while not ended:
                    time.sleep(0.2)
                    if self._children["master"].poll() is not None:
                        time.sleep(RESTART_PAUSE_S)
                        self._start_master(port, web_port)
                        self._record(master_url, web_port)
            finally:
                self._end_all()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with open(self._home / LOCK_FILE, "w") as lock:
            # whoever looks whether a cluster runs holds it for a moment
            deadline_s = time.monotonic() + LOCK_PATIENCE_S
            while not _lock(lock.fileno()):
                if time.monotonic() > deadline_s:
                    raise SluiceError(f"another supervisor runs in {self._home}")
                time.sleep(0.01)
            shutil.rmtree(self._home / "recovery", ignore_errors=True)
            yield

    def _record(self, master_url: str, web_port: int) -> None:
        state = ClusterState(
            supervisor_pid=os.getpid(),
            master_url=master_url,
            web_url=f"http://127.0.0.1:{web_port}",
            workers=self._workers,
            slots=self._slots,
            memory_mb=self._memory_mb,
            process_ids={name: child.pid for name, child in self._children.items()},
        )
        replace_file(self._home / STATE_FILE, json.dumps(asdict(state)).encode(), durable=True)

    def _start_master(self, port: int, web_port: int) -> None:
        self._start("master", "master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", web_port)

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
        command = [str(spark_home / "bin" / "spark-class"), f"{DAEMONS}{kind}", *map(str, arguments)]
        recovery = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={self._home / 'recovery'}"
        environment = {
            **os.environ,
            "SPARK_HOME": str(spark_home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{recovery} -XX:+UseSerialGC",
        }
        log = open(self._home / f"{name}.log", "ab")  # noqa: SIM115 - the child keeps it
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
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    Supervisor(Path(sys.argv[1]), *map(int, sys.argv[2:])).run()
