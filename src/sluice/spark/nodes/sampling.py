"""Sampling a size on the live load: one more node of it reads a share of the operator's input (QEScalor, section 2.2).

The share grows until the node's tasks take most of the time between batches: then the node is saturated, and what it
reads while it works is what it can do. Its records are those of the job: nothing is copied, lost or read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sluice.errors import SluiceError
from sluice.model import InstanceSize, Target
from sluice.spark.nodes.engine import SizedEngine
from sluice.spark.nodes.provider import WorkerNode

SATURATED = 0.8
"""Of the time between batches: tasks of the sampled node are to take so long."""
SHORT = 0.5
"""Of that: a node whose tasks are shorter was not saturated, and what every task costs hides what it can do."""
LARGEST_STEP, LARGEST_FACTOR = 2.0, 20.0
JOIN_S = 240.0
EMPTY_WINDOWS = 12


class LiveSampling:
    """A `SamplingTarget` for one operator of a running engine, which keeps its target meanwhile.

    A window without a finished batch of that node has no rate; after many of them sampling fails. `say` is given what
    the one who reads the rates should know.
    """

    def __init__(
        self,
        engine: SizedEngine,
        operator: str,
        target: Target,
        *,
        window_s: float,
        trigger_s: float,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._operator = operator
        self._target = target
        self._window_s = window_s
        self._goal_s = SATURATED * trigger_s
        self._say = say
        self._problems: dict[str, str] = {}
        """Type -> what was last said of its nodes before they had joined."""

    def rates(self, size: InstanceSize) -> Iterator[float]:
        engine = self._engine
        before = {node.name for node in engine.nodes_of(self._operator)}
        engine.extra = {self._operator: {size.name: 1}}
        try:
            yield from self._windows(self._joined(size.name, before))
        except GeneratorExit:
            self._release()
            self._until_released()
            raise
        except BaseException:
            self._release()
            raise

    def _windows(self, node: WorkerNode) -> Iterator[float]:
        empty, task_s = 0, None
        try:
            while empty < EMPTY_WINDOWS:
                self._pass(self._window_s)
                self._engine.observe()
                speed, task_s = self._engine.slot_speed(self._operator, node)
                if node.name not in self._engine.pool.ready:
                    raise SluiceError(f"node {node.name!r} was lost while it was sampled")
                if not speed or not task_s:
                    empty += 1
                    continue
                empty = 0
                self._adjust(node, task_s)
                yield speed * self._engine.pool.types[node.type].slots
        except GeneratorExit:
            if task_s is not None and task_s < SHORT * self._goal_s:
                self._say(
                    f"{self._operator} on {node.type}: tasks took {task_s:.2f} s, {self._goal_s:g} s were aimed at: "
                    f"too little load to saturate it, its rate may be too low"
                )
            raise
        raise SluiceError(
            f"node {node.name!r} read nothing of {self._operator!r} in {EMPTY_WINDOWS} windows: is there any load?"
        )

    def _adjust(self, node: WorkerNode, task_s: float) -> None:
        step = min(LARGEST_STEP, max(1 / LARGEST_STEP, self._goal_s / task_s))
        factor = self._engine.emphasis.get(node.name, 1.0) * step
        # with less than its share, what tasks cost without records would be most of what is measured
        self._engine.emphasis[node.name] = min(LARGEST_FACTOR, max(1.0, factor))

    def _joined(self, type_name: str, before: set[str]) -> WorkerNode:
        for _ in range(round(JOIN_S / self._engine.tick_s)):
            self._pass(self._engine.tick_s)
            for node in self._engine.nodes_of(self._operator):
                if node.name not in before and node.type == type_name:
                    return node
            if not self._engine.pool.is_available(type_name):
                why = self._problems.get(type_name, "its last start failed")
                raise SluiceError(f"no node of type {type_name!r} to sample: {why}")
        raise SluiceError(f"no node of type {type_name!r} came within {JOIN_S:g} s")

    def _release(self) -> None:
        self._engine.extra = {}
        self._engine.emphasis.clear()

    def _until_released(self) -> None:
        """The next one may need its cores."""
        for _ in range(round(JOIN_S / self._engine.tick_s)):
            self._pass(self._engine.tick_s)
            if not self._engine.pool.is_releasing:
                return

    def _pass(self, duration_s: float) -> None:
        """Let time pass as the loop does it, the target kept."""
        clock = self._engine.clock
        until_s = clock.now_s() + duration_s
        while (left_s := until_s - clock.now_s()) > 0 and not clock.interrupted.is_set():
            clock.sleep_s(min(self._engine.tick_s, left_s))
            self._note(self._engine.maintain())
            self._engine.reconcile(self._target)
        if clock.interrupted.is_set():
            raise SluiceError("interrupted")

    def _note(self, said: tuple[str, ...]) -> None:
        for event in said:
            for name in self._engine.pool.types:
                if event.startswith(f"node of type {name} "):
                    self._problems[name] = event
