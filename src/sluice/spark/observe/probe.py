"""The stages of streaming queries from Spark's status store, each handed out once, when its job is complete."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sluice.spark.internals.status import StatusStore
from sluice.spark.observe.events import BatchStage, read_stages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StageProbe:
    def __init__(self, spark: SparkSession) -> None:
        self.store = StatusStore(spark)
        self._newest_job: dict[str, int] = {}

    def new_stages(self, run_id: str) -> list[BatchStage]:
        """Stages of the jobs of this run that have finished since the last call, oldest first."""
        found: list[BatchStage] = []
        for job_id in self._new_jobs(run_id):
            job = self.store.job(job_id)
            if job is None or job["status"] == "RUNNING":
                break
            stages = [self.store.stage(stage_id) for stage_id in job["stageIds"]]
            found += read_stages(job, [stage for stage in stages if stage is not None])
            self._newest_job[run_id] = job_id
        return found

    def running_tasks(self, run_id: str) -> int:
        """Tasks of this run that are running now."""
        jobs = [self.store.job(job_id) for job_id in self._new_jobs(run_id)]
        return sum(int(job["numActiveTasks"]) for job in jobs if job is not None)

    def forget_all_but(self, run_ids: Collection[str]) -> None:
        self._newest_job = {run_id: job_id for run_id, job_id in self._newest_job.items() if run_id in run_ids}

    def _new_jobs(self, run_id: str) -> list[int]:
        newest = self._newest_job.get(run_id, -1)
        return [job_id for job_id in self.store.job_ids(run_id) if job_id > newest]
