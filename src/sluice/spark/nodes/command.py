"""Nodes by a command line of the user's: one that starts a node, one that stops it, one that lists those there are."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sluice.errors import BadInputError, SluiceError
from sluice.files import replace_file
from sluice.model import NodeType
from sluice.spark.nodes.provider import WorkerNode, type_named

TIMEOUT_S = 600.0


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

    def __post_init__(self) -> None:
        if self.file is not None and self.file.exists():
            self._nodes = {one["name"]: WorkerNode(**one) for one in json.loads(self.file.read_text())}

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
        self._run("--node-stop", self.commands.stop, node=node.name, host=node.host, type=node.type)
        with self._lock:
            self._nodes.pop(node.name, None)
            self._save()

    def list(self) -> Sequence[WorkerNode]:
        with self._lock:
            known = dict(self._nodes)
        if self.commands.list is None:
            return list(known.values())
        there = {line.split()[0] for line in self._run("--node-list", self.commands.list).splitlines() if line.split()}
        return [node for name, node in known.items() if name in there]

    def _start_one(self, type_name: str) -> WorkerNode:
        printed = self._run("--node-start", self.commands.start, type=type_name)
        words = printed.split()
        if len(words) not in (1, 2):
            raise SluiceError(f"--node-start must print HOST or NAME HOST, got {printed.strip()[:100]!r}")
        node = WorkerNode(name=words[0], type=type_name, host=words[-1])
        with self._lock:
            self._nodes[node.name] = node
            self._save()
        return node

    def _run(self, what: str, command: str, **values: str) -> str:
        line = command
        for name, value in {**values, "master": self.master}.items():
            line = line.replace(f"{{{name}}}", shlex.quote(value))
        try:
            done = subprocess.run(
                line, shell=True, capture_output=True, text=True, timeout=self.timeout_s, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired as error:
            raise SluiceError(f"{what} did not end within {self.timeout_s:g} s: {line}") from error
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise SluiceError(f"{what} ended with {done.returncode}: {said}")
        return done.stdout
