"""The process that owns a cluster: python -m sluice.spark.cluster.supervisor HOME, with HOME/plan.json.

It holds a lock for as long as it lives, so whether a cluster runs is never guessed from a process number. Daemons end
with it (Linux: parent-death signal). What daemons have started in turn (a NodeManager's containers, which outlive it)
a second process ends: it does nothing but wait for the first to be gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from sluice.errors import SluiceError
from sluice.files import replace_file
from sluice.spark.cluster.plan import ClusterPlan, Daemon, state_of
from sluice.spark.cluster.processes import end, end_with_parent, is_alive, marked_processes, processes_in

PLAN_FILE = "plan.json"
STATE_FILE = "cluster.json"
LOCK_FILE = "supervisor.lock"
REVIVE = signal.SIGHUP
"""Asks for every daemon that died, also those that otherwise stay dead."""
OWNER = "SLUICE_CLUSTER_OWNER"
"""Variable with the number of a process; the cluster ends when that process is gone, however it ended."""
RESTART_PAUSE_S = 1.0
LOCK_PATIENCE_S = 1.0


def take_lock(descriptor: int) -> bool:
    """Take the lock until the file is closed; False if somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Supervisor:
    """Starts the daemons, records them, and runs until it gets a signal to end."""

    def __init__(self, home: Path, plan: ClusterPlan) -> None:
        self._home = home
        self._plan = plan
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def run(self) -> None:
        ended: list[int] = []
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, lambda received, _: ended.append(received))
        revivals: list[int] = []
        signal.signal(REVIVE, lambda received, _: revivals.append(received))
        with self._alone():
            try:
                for name in self._plan.daemons:
                    self._start(name)
                self._record()
                while not ended and _has_owner():
                    time.sleep(0.2)
                    self._restart_dead(everyone=bool(revivals))
                    revivals.clear()
            finally:
                self._end_all()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with open(self._home / LOCK_FILE, "w") as lock:
            # whoever looks whether a cluster runs holds it for a moment
            deadline_s = time.monotonic() + LOCK_PATIENCE_S
            while not take_lock(lock.fileno()):
                if time.monotonic() > deadline_s:
                    raise SluiceError(f"another supervisor runs in {self._home}")
                time.sleep(0.01)
            yield

    def _restart_dead(self, *, everyone: bool) -> None:
        for name, daemon in self._plan.daemons.items():
            if (daemon.restart or everyone) and self._children[name].poll() is not None:
                time.sleep(RESTART_PAUSE_S)
                self._start(name)
                self._record()

    def _record(self) -> None:
        state = state_of(self._plan, os.getpid(), {name: child.pid for name, child in self._children.items()})
        replace_file(self._home / STATE_FILE, json.dumps(asdict(state)).encode(), durable=True)

    def _start(self, name: str) -> None:
        daemon = self._plan.daemons[name]
        with open(self._home / f"{name}.log", "ab") as log:
            self._children[name] = subprocess.Popen(
                daemon.command,
                stdout=log,
                stderr=log,
                cwd=self._home,
                env={**os.environ, **daemon.environment},
                preexec_fn=lambda: _prepare(daemon),
            )

    def _end_all(self) -> None:
        """Workers first: they want to say goodbye to their master."""
        for is_master in (False, True):
            chosen = [child for name, child in self._children.items() if self._plan.daemons[name].restart == is_master]
            for child in chosen:
                child.terminate()
            for child in chosen:
                try:
                    child.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    child.kill()


def _has_owner() -> bool:
    owner = os.environ.get(OWNER)
    return owner is None or is_alive(int(owner))


def _prepare(daemon: Daemon) -> None:
    end_with_parent()
    if daemon.limit is not None:
        daemon.limit.enter()


def end_leftovers_afterwards(plan: ClusterPlan) -> None:
    """Leave a process behind that waits until this one is gone, however it ends, and then ends what is left."""
    gone, held = os.pipe()
    if os.fork():
        os.close(gone)
        return  # `held` stays open until this process ends; its children do not inherit it
    os.close(held)
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.SIG_IGN)
    os.read(gone, 1)
    end(*marked_processes(plan.mark))
    end(*processes_in(plan.work_folder))
    for daemon in plan.daemons.values():
        if daemon.limit is not None:
            daemon.limit.remove()
    os._exit(0)


def main(home: Path) -> None:
    plan = ClusterPlan.from_json((home / PLAN_FILE).read_text())
    end_leftovers_afterwards(plan)
    Supervisor(home, plan).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
