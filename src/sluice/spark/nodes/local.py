"""Nodes on this machine: standalone workers with the slots and memory of their type, and its cores as a CPU quota.

Every node has a loopback address of its own, as machines have. All of them together get no more cores than the machine
has: a start beyond that fails, as it does where a cloud has no more. Spark requests the same heap for all executors of
an application; the environment of a worker, which its executor inherits, makes it that of the node.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.model import NodeType
from sluice.spark.cluster.limits import CpuLimit, available_cores, cpu_hierarchy, make_group
from sluice.spark.cluster.processes import end, end_with_parent, free_port, processes_in
from sluice.spark.cluster.standalone import worker_daemon
from sluice.spark.nodes.provider import WorkerNode, type_named
from sluice.spark.session import java_home_problem

HOSTS = [f"127.0.0.{number}" for number in range(101, 255)]
LEAST_MEMORY_MB = 512
JAVA_OPTIONS = "_JAVA_OPTIONS"
"""Of all ways to give a JVM its heap the one that has the last word, behind the command line."""


@dataclass(frozen=True)
class _Running:
    node: WorkerNode
    process: subprocess.Popen[bytes]
    limit: CpuLimit
    work: Path


class LocalNodes:
    """`home` gets their logs and working folders. They end with this process (Linux), and with `close`."""

    def __init__(
        self, master: str, types: Sequence[NodeType], home: Path, *, cores: float | None = None, limits: bool = True
    ) -> None:
        self._master = master
        self._types = tuple(types)
        self._home = home.resolve()
        self._cores = cores if cores is not None else float(len(available_cores()))
        self._groups = cpu_hierarchy() if limits else None
        self._numbers = itertools.count(1)
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._check(limits)

    def _check(self, limits: bool) -> None:
        if problem := java_home_problem():
            raise BadInputError(problem)
        for one in self._types:
            if one.memory_mb < LEAST_MEMORY_MB:
                raise BadInputError(
                    f"node type {one.name!r}: an executor needs {LEAST_MEMORY_MB} MB, got {one.memory_mb:g}"
                )
        if limits and self._groups is None:
            raise BadInputError("nodes on this machine need CPU quotas, and no control group may be made here")
        try:
            free_port(HOSTS[0])
        except OSError as error:
            raise BadInputError(f"nodes on this machine need loopback addresses such as {HOSTS[0]}: {error}") from error

    def types(self) -> Sequence[NodeType]:
        return self._types

    def start(self, type_name: str, count: int) -> Sequence[WorkerNode]:
        kind = type_named(self._types, type_name)
        started: list[WorkerNode] = []
        try:
            for _ in range(count):
                started.append(self._start_one(kind))
        except (SluiceError, OSError) as error:
            for node in started:
                self.stop(node)
            if isinstance(error, OSError):
                raise SluiceError(f"node of type {type_name!r} did not start: {error}") from error
            raise
        return started

    def _start_one(self, kind: NodeType) -> WorkerNode:
        with self._lock:
            self._forget_dead()
            used = sum(type_named(self._types, one.node.type).cpu_cores for one in self._running.values())
            if used + kind.cpu_cores > self._cores + 1e-9:
                raise SluiceError(
                    f"no room for a {kind.name!r}: nodes have {used:g} of {self._cores:g} cores, "
                    f"it needs {kind.cpu_cores:g}"
                )
            taken = {one.node.host for one in self._running.values()}
            number = next(self._numbers)
            node = WorkerNode(name=f"{kind.name}-{number}", type=kind.name, host=_free(taken, number))
            self._running[node.name] = self._launch(node, kind)
        return node

    def _launch(self, node: WorkerNode, kind: NodeType) -> _Running:
        folder = re.sub(r"[^\w.-]", "_", node.name)
        work = self._home / folder
        work.mkdir(parents=True, exist_ok=True)
        group = None
        if self._groups is not None:
            mark = hashlib.sha256(str(work).encode()).hexdigest()[:12]
            group = make_group(self._groups / f"sluice-node-{mark}", kind.cpu_cores)
            if group is None:
                raise SluiceError(f"node {node.name!r}: no CPU quota of {kind.cpu_cores:g} cores can be set")
        limit = CpuLimit(cpus=kind.cpu_cores, cores=available_cores(), group=group)
        daemon = worker_daemon(
            self._master, host=node.host, slots=kind.slots, memory_mb=int(kind.memory_mb), work_dir=work
        )

        def prepare() -> None:
            end_with_parent()
            limit.enter()

        with open(self._home / f"{folder}.log", "wb") as log:
            process = subprocess.Popen(
                daemon.command,
                stdout=log,
                stderr=log,
                cwd=work,
                env={**os.environ, **daemon.environment, JAVA_OPTIONS: heap_options(kind.memory_mb)},
                preexec_fn=prepare,
            )
        return _Running(node, process, limit, work)

    def stop(self, node: WorkerNode) -> None:
        with self._lock:
            running = self._running.pop(node.name, None)
        if running is not None:
            _end(running)

    def list(self) -> Sequence[WorkerNode]:
        with self._lock:
            self._forget_dead()
            return [one.node for one in self._running.values()]

    def close(self) -> None:
        """End all of them; safe to call twice."""
        with self._lock:
            running, self._running = list(self._running.values()), {}
        for one in running:
            one.process.terminate()
        for one in running:
            _end(one)

    def process_id(self, node: WorkerNode) -> int:
        """For whoever wants to see what happens when a node dies."""
        with self._lock:
            return self._running[node.name].process.pid

    def _forget_dead(self) -> None:
        """A worker that was killed leaves its executor behind for a moment; it must not have cores nobody counts."""
        for name in [name for name, one in self._running.items() if one.process.poll() is not None]:
            _end(self._running.pop(name))


def heap_options(memory_mb: float) -> str:
    """Those there are, and the heap."""
    return f"{os.environ.get(JAVA_OPTIONS, '')} -Xmx{int(memory_mb)}m".strip()


def _free(taken: set[str], number: int) -> str:
    """Another address than the last nodes had: Spark remembers for a while what was lost there."""
    turned = HOSTS[number % len(HOSTS) :] + HOSTS[: number % len(HOSTS)]
    host = next((host for host in turned if host not in taken), None)
    if host is None:
        raise SluiceError(f"no more than {len(HOSTS)} nodes on one machine")
    return host


def _end(running: _Running) -> None:
    running.process.terminate()
    try:
        running.process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()
    end(*processes_in(str(running.work)), patience_s=5.0)
    running.limit.remove()
    shutil.rmtree(running.work, ignore_errors=True)
