"""How fast the executors work for every operator: records read over the time of all its tasks there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SMOOTHING = 0.5
"""How much of a window's speed enters what was known before."""

Key = tuple[str, str]
"""Operator and executor."""


@dataclass
class TaskSpeeds:
    """Of one slot, in records/s: what a task that keeps state takes counts with the tasks that read."""

    _records: dict[Key, int] = field(default_factory=dict)
    _run_s: dict[Key, float] = field(default_factory=dict)
    _tasks: dict[Key, int] = field(default_factory=dict)
    _smooth: dict[Key, float] = field(default_factory=dict)
    _warm: set[Key] = field(default_factory=set)
    """Those that have read something before: in its first window an executor loads classes and compiles."""
    window: dict[Key, float] = field(default_factory=dict)
    """Of the last window alone."""
    fresh: set[Key] = field(default_factory=set)
    """Those whose first one that was."""
    task_s: dict[Key, float] = field(default_factory=dict)
    """The mean length of a task that read something in the last window."""

    def add(self, tasks: Sequence[Mapping[str, Any]], operator_of_run: Callable[[str], str | None]) -> None:
        for task in tasks:
            operator = operator_of_run(task["run_id"])
            if operator is None:
                continue
            key = (operator, task["executor"])
            records = task.get("read_records", 0)
            self._records[key] = self._records.get(key, 0) + records
            self._run_s[key] = self._run_s.get(key, 0.0) + task.get("run_ms", 0) / 1e3
            self._tasks[key] = self._tasks.get(key, 0) + (records > 0)

    def close_window(self) -> None:
        read = {key: records for key, records in self._records.items() if records and self._run_s[key] > 0}
        self.window = {key: records / self._run_s[key] for key, records in read.items()}
        self.task_s = {key: self._run_s[key] / self._tasks[key] for key in self.window if self._tasks[key]}
        for key, speed in self.window.items():
            if key in self._warm:
                before = self._smooth.get(key, speed)
                self._smooth[key] = before + SMOOTHING * (speed - before)
        self.fresh = self.window.keys() - self._warm
        self._warm |= self.fresh
        self._records, self._run_s, self._tasks = {}, {}, {}

    def of(self, operator: str) -> dict[str, float]:
        """Executor -> records/s of a slot, smoothed over windows but the first; none of an executor that is new."""
        return {executor: speed for (name, executor), speed in self._smooth.items() if name == operator}
