"""Jobs of the application that are no observed query's: batch work, RDDs, queries of which Spark does not tell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sluice.spark.attach.application import ExecutorInfo


class Jobs(Protocol):
    """What is asked of Spark's status store."""

    def active_job_ids(self) -> list[int]: ...

    def job(self, job_id: int) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class OtherWork:
    """Other jobs at one moment, or in a window: then the most jobs and executors, and the mean of the tasks."""

    jobs: int = 0
    tasks: float = 0
    executors: int = 0
    """Executors their tasks may run on: no more than those that are busy, no more than there are tasks."""
    all_jobs: int = 0
    """With those of queries."""

    @staticmethod
    def over(samples: Sequence[OtherWork]) -> OtherWork:
        if not samples:
            return OtherWork()
        return OtherWork(
            max(one.jobs for one in samples),
            sum(one.tasks for one in samples) / len(samples),
            max(one.executors for one in samples),
            max(one.all_jobs for one in samples),
        )


class OtherJobs:
    """Tells the jobs of observed queries from all others by their job group, which is the run id of a query."""

    def __init__(self, store: Jobs) -> None:
        self._store = store
        self._groups: dict[int, str] = {}

    def sample(self, run_ids: Collection[str], here: Sequence[ExecutorInfo]) -> OtherWork:
        active = self._store.active_job_ids()
        self._groups = {job_id: self._groups[job_id] for job_id in active if job_id in self._groups}
        jobs = tasks = 0
        for job_id in active:
            if self._groups.get(job_id) in run_ids:
                continue
            job = self._store.job(job_id)
            if job is None:
                continue
            self._groups[job_id] = job.get("jobGroup") or ""
            if self._groups[job_id] not in run_ids:
                jobs += 1
                tasks += int(job["numActiveTasks"])
        busy = sum(1 for executor in here if executor.active_tasks)
        return OtherWork(jobs, tasks, min(busy, tasks), len(active))
