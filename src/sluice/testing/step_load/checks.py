"""What `attach` must not do to a running job, and how it ends: checks by name, each on the job of `program`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sluice
from sluice.errors import BadInputError
from sluice.journal.file import MemoryJournal
from sluice.journal.results import CycleReport
from sluice.model import Observation, Recommendation
from sluice.spark.attach import Attachment
from sluice.testing.step_load.executors import active_executors
from sluice.testing.step_load.feed import LineFeed
from sluice.testing.step_load.job import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class ConstantPolicy:
    """Always recommends the same number of executors."""

    executors: int

    def decide(self, observation: Observation, memory: Any) -> tuple[Recommendation, Any]:
        parallelism = dict.fromkeys(observation.operators, self.executors)
        return Recommendation(parallelism=parallelism, reason=f"always {self.executors}"), memory


@dataclass(frozen=True)
class RunningJob:
    """The running job: nobody is attached when a check begins, nor when it ends."""

    spark: SparkSession
    query: StreamingQuery
    feed: LineFeed

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(condition, self.query, what)

    def batches(self, more: int) -> None:
        """Let the query finish some more batches."""
        now = self.done()
        self.wait(lambda: self.done() >= now + more, f"{more} more batches")

    def done(self) -> int:
        last = self.query.lastProgress
        return -1 if last is None else int(last.batchId)

    def executors(self) -> set[str]:
        return {one.id() for one in active_executors(self.spark)}

    def attach(self, policy: Any, **settings: Any) -> Attachment:
        return sluice.attach(self.spark, policy, **{"interval": 1, "cooldown": 0, **settings})


def reports(attachment: Attachment) -> tuple[CycleReport, ...]:
    assert isinstance(attachment.journal, MemoryJournal)
    return attachment.journal.reports()


def _refusal(call: Callable[[], object]) -> str:
    try:
        return f"accepted: {call()}"
    except BadInputError as error:
        return str(error)


def dry_run_changes_nothing(job: RunningJob) -> None:
    before = job.executors()
    other = 1 if len(before) > 1 else 2
    with job.attach(ConstantPolicy(other), dry_run=True) as watching:
        job.wait(lambda: len(reports(watching)) >= 3, "3 cycles")
        job.batches(2)
    assert job.executors() == before
    last = reports(watching)[-1]
    assert last.result.kind == "would_scale", last
    assert last.cycle.proposed is not None, last
    assert last.cycle.proposed.parallelism == {"counts": other}, last
    assert last.cycle.observation.parallelism == {"counts": len(before)}, last


def detaching_leaves_the_job_as_it_is(job: RunningJob) -> None:
    attachment = job.attach(ConstantPolicy(2))
    assert "is attached already" in _refusal(lambda: job.attach(ConstantPolicy(1)))
    job.wait(lambda: len(job.executors()) == 2, "2 executors")
    attachment.detach()
    left = job.executors()
    job.batches(3)
    assert job.executors() == left
    assert attachment.failure is None


def a_failing_thread_leaves_the_job_as_it_is(job: RunningJob) -> None:
    before = job.executors()
    attachment = job.attach(ConstantPolicy(len(before)))

    def full(_record: object) -> None:
        raise OSError("No space left on device")

    setattr(attachment.journal, "append", full)  # noqa: B010 - a method
    job.wait(lambda: not attachment.is_watching, "end of the watching")
    assert isinstance(attachment.failure, OSError), attachment.failure
    job.batches(2)
    assert job.executors() == before


def _fail(_report: object) -> None:
    raise KeyError("missing")


def a_watcher_that_fails_is_left_out(job: RunningJob) -> None:
    with job.attach(ConstantPolicy(len(job.executors()))) as attachment:
        attachment.on_report(_fail)
        job.wait(lambda: len(reports(attachment)) >= 2, "2 cycles")
    assert attachment.failure is None


def an_idle_source_goes_to_the_minimum_and_comes_back(job: RunningJob) -> None:
    with job.attach("ds2", idle=3, interval=2, initial_executors=2):
        job.feed.records_per_s = 0.0
        job.wait(lambda: len(job.executors()) == 1, "the minimum")
        job.feed.records_per_s = 150.0
        job.wait(lambda: len(job.executors()) >= 2, "more than the minimum")


CHECKS: dict[str, Callable[[RunningJob], None]] = {
    "dry-run": dry_run_changes_nothing,
    "detach": detaching_leaves_the_job_as_it_is,
    "failure": a_failing_thread_leaves_the_job_as_it_is,
    "watcher": a_watcher_that_fails_is_left_out,
    "idle": an_idle_source_goes_to_the_minimum_and_comes_back,
}
