"""Nodes by a command line of the user's: one that starts a node, one that stops it, one that lists those there are."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from sluice.errors import BadInputError, SluiceError
from sluice.files import replace_file
from sluice.model import NodeType
from sluice.spark.nodes.provider import WorkerNode, type_named

TIMEOUT_S = 600.0
MOST_SHOWN = 200
"""Characters of what a command printed that an error repeats."""


@dataclass(frozen=True, kw_only=True)
class NodeCommands:
    """`start` has `{type}` in it and prints `HOST` or `NAME HOST`; `stop` has `{node}` (its name) or `{host}`.

    `list` prints `NAME` or `NAME HOST` of every node that is there, a line each; without it a node counts as there
    until it was stopped, and one that dies is noticed only by its executor. `{master}` is the master's address.
    """

    start: str
    stop: str
    list: str | None = None

    def __post_init__(self) -> None:
        for what, command, needed in (
            ("--node-start", self.start, ("{type}",)),
            ("--node-stop", self.stop, ("{node}", "{host}")),
        ):
            if not any(word in command for word in needed):
                raise BadInputError(f"{what} must contain {' or '.join(needed)}, got {command!r}")


@dataclass
class CommandNodes:
    commands: NodeCommands
    node_types: Sequence[NodeType]
    master: str = ""
    file: Path | None = None
    """Keeps what was started: a process that was killed leaves nodes behind, and the next one finds them here."""
    timeout_s: float = TIMEOUT_S
    _nodes: dict[str, WorkerNode] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _starting: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _abandoned: bool = False

    def __post_init__(self) -> None:
        if self.file is not None and self.file.exists():
            try:
                self._nodes = {one["name"]: WorkerNode(**one) for one in json.loads(self.file.read_text())}
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise BadInputError(f"{str(self.file)!r} does not say which nodes a run had: {error}") from error

    def _save(self) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.file, json.dumps([asdict(one) for one in self._nodes.values()]).encode(), durable=True)

    def types(self) -> Sequence[NodeType]:
        return self.node_types

    def start(self, type_name: str, count: int) -> Sequence[WorkerNode]:
        type_named(self.node_types, type_name)
        started: list[WorkerNode] = []
        try:
            for _ in range(count):
                started.append(self._start_one(type_name))
        except SluiceError:
            for node in started:
                self.stop(node)
            raise
        return started

    def stop(self, node: WorkerNode) -> None:
        try:
            self._run("--node-stop", self.commands.stop, node=node.name, host=node.host, type=node.type)
        except SluiceError:
            if self.commands.list is None or node.name in self._listed():
                raise
        with self._lock:
            self._nodes.pop(node.name, None)
            self._save()

    def list(self) -> Sequence[WorkerNode]:
        with self._lock:
            known = dict(self._nodes)
        if self.commands.list is None:
            return list(known.values())
        there = self._listed()
        return [node for name, node in known.items() if name in there]

    def abandon_starts(self) -> None:
        """End the commands that start nodes, and start no more: whoever waits for them has gone."""
        with self._lock:
            self._abandoned = True
            for process in self._starting:
                _kill(process)

    def _listed(self) -> set[str]:
        assert self.commands.list is not None
        return {line.split()[0] for line in self._run("--node-list", self.commands.list).splitlines() if line.split()}

    def _start_one(self, type_name: str) -> WorkerNode:
        printed = self._run("--node-start", self.commands.start, type=type_name)
        words = printed.split()
        if len(words) not in (1, 2):
            raise SluiceError(f"--node-start must print HOST or NAME HOST, got {printed.strip()[:MOST_SHOWN]!r}")
        node = WorkerNode(name=words[0], type=type_name, host=words[-1])
        with self._lock:
            if node.name in self._nodes:
                raise SluiceError(f"--node-start must start another node each time, got {node.name!r} again")
            self._nodes[node.name] = node
            self._save()
        return node

    def _run(self, what: str, command: str, **values: str) -> str:
        line = command
        for name, value in {**values, "master": self.master}.items():
            line = line.replace(f"{{{name}}}", shlex.quote(value))
        # files, not pipes: what the command leaves running may hold them open
        with TemporaryFile() as printed, TemporaryFile() as complaint:
            process = self._begin(line, printed, complaint, is_start=what == "--node-start")
            try:
                status = process.wait(self.timeout_s)
            except subprocess.TimeoutExpired as error:
                raise SluiceError(f"{what} did not end within {self.timeout_s:g} s: {line}") from error
            finally:
                _kill(process)
                with self._lock:
                    self._starting.discard(process)
            if status:
                said = (_text(complaint).strip() or _text(printed).strip() or "no message").splitlines()[-1]
                raise SluiceError(f"{what} ended with {status}: {said[:MOST_SHOWN]}")
            return _text(printed)

    def _begin(self, line: str, printed: IO[bytes], complaint: IO[bytes], *, is_start: bool) -> subprocess.Popen[bytes]:
        """In a session of its own: all it has begun ends with it if it takes too long."""
        with self._lock:
            if is_start and self._abandoned:
                raise SluiceError("--node-start was not called: the run is over")
            process = subprocess.Popen(
                line, shell=True, stdin=subprocess.DEVNULL, stdout=printed, stderr=complaint, start_new_session=True
            )
            if is_start:
                self._starting.add(process)
        return process


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """With all it has begun, if it has not ended; what a command that ended left behind is the node it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
