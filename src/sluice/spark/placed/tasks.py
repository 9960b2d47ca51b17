"""What ran where in one window, and how much of it where it was planned. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluice.model import Worker, WorkerMetrics

SOURCE, STATE = "source", "state"
"""Kinds of tasks that have a place: those that read, and those that keep state."""


@dataclass
class WorkerTasks:
    """The tasks of one worker since the window began."""

    source: dict[str, int] = field(default_factory=dict)
    state: dict[str, int] = field(default_factory=dict)
    run_s: float = 0.0
    cpu_s: float = 0.0
    remote_bytes: int = 0
    written_bytes: int = 0


@dataclass
class TaskAccount:
    """Filled from the log of tasks. A placed task counts as followed if it ran on the executor it was planned on.

    One without a plan counts as not followed; stages that only shuffle have no place.
    """

    placed: int = 0
    followed: int = 0
    displaced: int = 0
    """Not followed, because the planned executor was gone when the task was launched."""
    workers: dict[str, WorkerTasks] = field(default_factory=dict)
    state_s: dict[str, dict[int, float]] = field(default_factory=dict)
    """Operator -> CPU time that each of its state partitions took; a crowded worker does not make it more."""
    cpu_s: dict[str, float] = field(default_factory=dict)
    """Operator -> CPU time of all its tasks."""

    def add(
        self,
        tasks: Sequence[Mapping[str, Any]],
        operator_of_run: Callable[[str], str | None],
        worker_of: Callable[[str], str | None],
        gone: Collection[str] = (),
    ) -> None:
        """`gone` are the executors that are no more."""
        for task in tasks:
            operator, worker = operator_of_run(task["run_id"]), worker_of(task["executor"])
            if operator is None or worker is None:
                continue
            account = self.workers.setdefault(worker, WorkerTasks())
            account.run_s += task.get("run_ms", 0) / 1e3
            cpu_s = task.get("cpu_ns", 0) / 1e9
            account.cpu_s += cpu_s
            self.cpu_s[operator] = self.cpu_s.get(operator, 0.0) + cpu_s
            account.remote_bytes += task.get("remote_bytes", 0)
            account.written_bytes += task.get("written_bytes", 0)
            if task["kind"] not in (SOURCE, STATE):
                continue
            counts = account.source if task["kind"] == SOURCE else account.state
            counts[operator] = counts.get(operator, 0) + 1
            if task["kind"] == STATE:
                taken_s = self.state_s.setdefault(operator, {})
                taken_s[task["partition"]] = taken_s.get(task["partition"], 0.0) + cpu_s
            self.placed += 1
            self.followed += task["planned"] == task["executor"]
            self.displaced += task["planned"] != task["executor"] and task["planned"] in gone

    def metrics(
        self, workers: tuple[Worker, ...], interval_s: float, io_rates: Mapping[str, float] | None = None
    ) -> dict[str, WorkerMetrics]:
        """`io_rates` are the state bytes/s of operators: a worker has the share of its state tasks in them."""
        tasks: dict[str, int] = {}
        for one in self.workers.values():
            for operator, count in one.state.items():
                tasks[operator] = tasks.get(operator, 0) + count
        found = {}
        for worker in workers:
            account = self.workers.get(worker.name, WorkerTasks())
            found[worker.name] = WorkerMetrics(
                slots=worker.slots,
                source_tasks=account.source,
                state_tasks=account.state,
                busy=min(1.0, account.run_s / (worker.slots * interval_s)),
                task_cpu=account.cpu_s / interval_s,
                net_rate=account.remote_bytes / interval_s,
                topic_rate=account.written_bytes / interval_s,
                io_rate=sum(
                    (io_rates or {}).get(operator, 0.0) * count / tasks[operator]
                    for operator, count in account.state.items()
                ),
                cpu_capacity=worker.cpu,
                io_capacity=worker.io,
                net_capacity=worker.net,
            )
        return found
