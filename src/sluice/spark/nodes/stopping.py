"""Nodes that are being stopped: tried until the provider has done it, for each of them costs money until then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from sluice.spark.nodes.provider import NodeProvider, WorkerNode, one_line, pause_s

FIRST_PAUSE_S = 5.0


@dataclass
class _Stop:
    """Without an `answer` it is tried again at `again_s`."""

    node: WorkerNode
    answer: Future[None] | None
    failures: int = 0
    again_s: float = 0.0


class Stopping:
    """Calls the provider in threads of `executor`."""

    def __init__(self, provider: NodeProvider, executor: Executor, now_s: Callable[[], float]) -> None:
        self._provider = provider
        self._executor = executor
        self._now_s = now_s
        self._stops: dict[str, _Stop] = {}

    @property
    def nodes(self) -> Sequence[WorkerNode]:
        """Those that are not stopped yet."""
        return [stop.node for stop in self._stops.values()]

    def add(self, node: WorkerNode) -> None:
        self._stops[node.name] = _Stop(node, self._call(node))

    def tick(self) -> list[str]:
        """A sentence for every node that was stopped, or was not."""
        said = []
        for name, stop in list(self._stops.items()):
            if stop.answer is None and self._now_s() >= stop.again_s:
                stop.answer = self._call(stop.node)
            if stop.answer is None or not stop.answer.done():
                continue
            if (error := stop.answer.exception()) is None:
                del self._stops[name]
                said.append(f"node {name} stopped")
                continue
            wait_s = pause_s(FIRST_PAUSE_S, stop.failures)
            stop.answer, stop.failures, stop.again_s = None, stop.failures + 1, self._now_s() + wait_s
            said.append(f"node {name} was not stopped: {one_line(error)}; tried again in {wait_s:.0f} s")
        return said

    def close(self) -> tuple[str, ...]:
        """Wait for all of them; a sentence for each that could not be stopped."""
        answers = {stop.node: stop.answer or self._call(stop.node) for stop in self._stops.values()}
        self._stops = {}
        return tuple(
            f"node {node.name} on {node.host} was not stopped and may cost on: {one_line(error)}"
            for node, answer in answers.items()
            if (error := answer.exception()) is not None
        )

    def _call(self, node: WorkerNode) -> Future[None]:
        return self._executor.submit(self._provider.stop, node)
