"""Begin and end of a cluster, whatever its kind, and whether one runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.files import replace_file
from sluice.spark.causes import last_error
from sluice.spark.cluster.plan import ClusterPlan, ClusterState, read_recorded
from sluice.spark.cluster.processes import end, is_alive, marked_processes, processes_in
from sluice.spark.cluster.supervisor import LOCK_FILE, PLAN_FILE, REVIVE, STATE_FILE, take_lock
from sluice.spark.cluster.workers import alive_workers, counted_workers
from sluice.spark.session import java_home_problem

START_TIMEOUT_S = 60.0
_started: dict[int, subprocess.Popen[bytes]] = {}
"""Supervisors this process started: they outlive it, and it has to look after those that end before."""


def default_home() -> Path:
    return Path(os.environ.get("SLUICE_CLUSTER_HOME", Path.home() / ".sluice" / "cluster"))


def read_state(home: Path) -> ClusterState | None:
    """The running cluster, or None; a state file whose supervisor is gone does not count."""
    return read_recorded(home / STATE_FILE) if _is_supervised(home) else None


def _is_supervised(home: Path) -> bool:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), open(home / LOCK_FILE) as lock:
        return not take_lock(lock.fileno())
    return False


def clear_home(home: Path) -> None:
    """Make the folder ready for a new cluster; one that runs there already is bad input."""
    if problem := java_home_problem():
        raise BadInputError(problem)
    if (running := read_state(home)) is not None:
        raise BadInputError(
            f"a {running.kind} cluster is running already at {running.web_url}; "
            f"'sluice {_command(running)} down' ends it"
        )
    try:
        down(home)
        home.mkdir(parents=True, exist_ok=True)
        for log in home.glob("*.log"):
            log.unlink()
        (home / LOCK_FILE).touch()
    except OSError as error:
        raise BadInputError(f"cannot keep a cluster in {str(home)!r}: {error.strerror}") from error


def _command(state: ClusterState) -> str:
    return "kafka" if state.kind == "kafka" else "cluster"


def start(home: Path, plan: ClusterPlan) -> ClusterState:
    """Start a cluster and wait until all its workers have joined; if a process ends before, say why."""
    replace_file(home / PLAN_FILE, plan.to_json().encode(), durable=False)
    command = [sys.executable, "-m", "sluice.spark.cluster.supervisor", str(home)]
    with open(home / "supervisor.log", "wb") as output:
        supervisor = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    _started[supervisor.pid] = supervisor
    state = _await_workers(home, supervisor, plan)
    if isinstance(state, ClusterState):
        return state
    end(supervisor.pid, patience_s=20)
    _started.pop(supervisor.pid).wait()
    _end_marked(plan.mark)
    raise SluiceError(f"the cluster did not start: {state}; the logs are in {home}")


def _await_workers(home: Path, supervisor: subprocess.Popen[bytes], plan: ClusterPlan) -> ClusterState | str:
    """The state of the complete cluster, or why it will not be complete."""
    joined = 0
    # a JVM with half a core takes twice as long to start
    patience_s = START_TIMEOUT_S / min(1.0, plan.size.cpus or 1.0)
    deadline_s = time.monotonic() + patience_s
    while time.monotonic() < deadline_s:
        if supervisor.poll() is not None:
            return _logged_error(home, "supervisor")
        state = read_state(home)
        if state is not None:
            found = counted_workers(state)
            joined = len(found or ())
            if found is not None and joined == plan.size.workers:
                return state
            for name, process in state.process_ids.items():
                if not is_alive(process):
                    return _logged_error(home, name)
        time.sleep(0.2)
    errors = [_logged_error(home, path.stem) for path in sorted(home.glob("*.log")) if path.stat().st_size]
    return "; ".join([f"{joined} of {plan.size.workers} workers joined within {patience_s:g} s", *errors])


def _logged_error(home: Path, name: str) -> str:
    """What a process of the cluster logged as its last error."""
    with contextlib.suppress(FileNotFoundError):
        return f"{name}: {last_error((home / f'{name}.log').read_text(errors='replace')) or 'ended without a message'}"
    return f"{name}: ended without a message"


def revive(home: Path) -> list[str]:
    """Start workers that died again and wait until they have joined; their names."""
    state = read_state(home)
    if state is None:
        raise BadInputError(f"no cluster runs in {str(home)!r}; 'sluice cluster up' starts one")
    dead = [name for name, process in state.process_ids.items() if not is_alive(process)]
    if not dead:
        return []
    os.kill(state.supervisor_pid, REVIVE)
    deadline_s = time.monotonic() + START_TIMEOUT_S / min(1.0, state.cpus or 1.0)
    while time.monotonic() < deadline_s:
        now = read_state(home)
        if now and all(is_alive(now.process_ids[name]) for name in dead) and len(alive_workers(now)) == now.workers:
            return dead
        time.sleep(0.2)
    raise SluiceError(f"{', '.join(dead)} did not join again; the logs are in {home}")


def down(home: Path) -> bool:
    """End the cluster, or what is left of one whose supervisor was killed; False if there is none."""
    state = read_recorded(home / STATE_FILE)
    if state is None:
        return False
    supervised = _is_supervised(home)
    if supervised:
        end(state.supervisor_pid, patience_s=30)
    if (mine := _started.pop(state.supervisor_pid, None)) is not None:
        mine.wait()
    left = _end_marked(state.mark)
    end(*processes_in(state.work_folder))
    for group in state.cpu_groups:
        with contextlib.suppress(OSError):
            os.rmdir(group)
    (home / STATE_FILE).unlink(missing_ok=True)
    return supervised or left


def _end_marked(mark: str) -> bool:
    """End all processes of a cluster; False if there were none."""
    found = marked_processes(mark)
    end(*found)
    return bool(found)
