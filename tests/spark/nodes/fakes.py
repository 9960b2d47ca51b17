"""A provider whose nodes are only noted, and threads that are none."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from sluice.errors import SluiceError
from sluice.model import NodeType
from sluice.spark.nodes.provider import WorkerNode, type_named

SMALL = NodeType(name="small", cpu_cores=0.5, memory_mb=512, price_per_hour=0.02, start_s=10)
LARGE = NodeType(name="large", cpu_cores=2, memory_mb=1024, price_per_hour=0.06, start_s=20)
TYPES = (SMALL, LARGE)


class AtOnce(Executor):
    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Later(Executor):
    """Work that is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future, object]] = []

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for future, work in waiting:
            future.set_result(work())


class FakeNodes:
    def __init__(self, types: tuple[NodeType, ...] = TYPES) -> None:
        self._types = types
        self.nodes: dict[str, WorkerNode] = {}
        self.full: set[str] = set()
        """Types that cannot be started now."""
        self.count = 0
        self.stopped: list[str] = []

    def types(self):
        return self._types

    def start(self, type_name, count):
        type_named(self._types, type_name)
        if type_name in self.full:
            raise SluiceError(f"no room for a {type_name!r}")
        started = []
        for _ in range(count):
            self.count += 1
            node = WorkerNode(name=f"{type_name}-{self.count}", type=type_name, host=f"10.0.0.{self.count}")
            self.nodes[node.name] = node
            started.append(node)
        return started

    def stop(self, node):
        self.stopped.append(node.name)
        self.nodes.pop(node.name, None)

    def list(self):
        return list(self.nodes.values())

    @property
    def hosts(self) -> set[str]:
        return {node.host for node in self.nodes.values()}
