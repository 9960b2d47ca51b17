"""When a node may go: nothing of a batch is left on its executor, which then takes no more tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from sluice.spark.nodes.provider import WorkerNode
from sluice.spark.placed.workers import Executor

IDLE_S = 5.0
"""Without a task for so long, what it has shuffled for a batch has been read."""
LONGEST_S = 60.0
"""Tasks without a place may keep coming: then Spark is told to give it none, and its last ones end."""
LAST_TASKS_S = 30.0


class Drains:
    """Called every second for a node that is to go; `decommission` tells Spark to give an executor no more tasks."""

    def __init__(
        self,
        workers: Callable[[], Mapping[str, Executor]],
        active_tasks: Callable[[], Mapping[str, int]],
        decommission: Callable[[Sequence[str]], object],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers = workers
        self._active_tasks = active_tasks
        self._decommission = decommission
        self._now_s = now_s
        self._since_s: dict[str, float] = {}
        self._idle_since_s: dict[str, float] = {}
        self._told: set[str] = set()

    def __call__(self, node: WorkerNode) -> bool:
        executor = self._workers().get(node.host)
        now_s = self._now_s()
        since_s = self._since_s.setdefault(node.name, now_s)
        if executor is None:
            return self._over(node)
        if self._active_tasks().get(executor.executor_id, 0):
            self._idle_since_s.pop(node.name, None)
        idle_s = now_s - self._idle_since_s.setdefault(node.name, now_s)
        if node.name in self._told:
            return self._over(node) if idle_s > 0 or now_s - since_s > LONGEST_S + LAST_TASKS_S else False
        if idle_s >= IDLE_S or now_s - since_s > LONGEST_S:
            self._decommission([executor.executor_id])
            self._told.add(node.name)
        return False

    def _over(self, node: WorkerNode) -> bool:
        for known in (self._since_s, self._idle_since_s):
            known.pop(node.name, None)
        self._told.discard(node.name)
        return True
