"""The program of a test: what attaching must not do to a job, and how it ends; on a cluster without decommissioning.

python -m tests.spark.lifejob ROOT CLUSTER_HOME
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sluice
from sluice.control.journal import MemoryJournal
from sluice.engines.spark.attach import Attachment
from sluice.engines.spark.standalone import read_state
from sluice.errors import BadInputError
from sluice.model import Decision, Observation
from tests.spark import stepload


@dataclass(frozen=True)
class Wish:
    """A policy that always wants the same."""

    executors: int

    def decide(self, observation: Observation, memory: Any) -> tuple[Decision, Any]:
        wish = dict.fromkeys(observation.operators, self.executors)
        return Decision(parallelism=wish, reason=f"wants {self.executors}"), memory


class Job:
    def __init__(self, root: Path, home: Path) -> None:
        cluster = read_state(home)
        assert cluster is not None, f"no cluster at {home}"
        self.root = root
        self.spark = stepload.session(cluster.master_url, **{"spark.cores.max": "4"})
        self.feed = stepload.LineFeed(root / "in", 30.0)
        self.query = stepload.start_query(self.spark, root)
        self.feed.start()

    def wait(self, condition: Any, what: str) -> None:
        stepload.wait_for(condition, self.query, what)

    def batches(self, more: int) -> None:
        """Let the query finish some more batches."""
        now = self.done()
        self.wait(lambda: self.done() >= now + more, f"{more} more batches")

    def done(self) -> int:
        last = self.query.lastProgress
        return -1 if last is None else int(last.batchId)

    def executors(self) -> set[str]:
        return set(stepload.executor_processes(self.spark.sparkContext.applicationId))

    def attach(self, policy: Any, **settings: Any) -> Attachment:
        return sluice.attach(self.spark, policy, **{"interval": 1, "cooldown": 0, **settings})


def cycles(attachment: Attachment) -> list[Any]:
    assert isinstance(attachment.journal, MemoryJournal)
    return [entry for entry in attachment.journal.entries if entry["kind"] == "cycle"]


def dry_run_changes_nothing(job: Job) -> None:
    job.wait(lambda: len(job.executors()) == 4, "4 executors")
    job.batches(1)
    before = job.executors()
    with job.attach(Wish(1), dry_run=True) as watching:
        job.wait(lambda: len(cycles(watching)) >= 3, "3 cycles")
        job.batches(2)
    assert job.executors() == before
    seen = cycles(watching)[-1]
    assert (seen["applied"], seen["dry_run"], seen["plan"]["parallelism"]) == (None, True, {"counts": 1}), seen
    assert seen["observation"]["operators"]["counts"]["parallelism"] == 4, seen


def detach_leaves_the_job_as_it_is(job: Job) -> None:
    attachment = job.attach(Wish(2))
    with pytest.raises(BadInputError, match="is attached already"):
        job.attach(Wish(1))
    job.wait(lambda: len(job.executors()) == 2, "2 executors")
    attachment.detach()
    left = job.executors()
    job.batches(3)
    assert job.executors() == left
    assert attachment.failure is None


def a_failing_attachment_leaves_the_job_as_it_is(job: Job) -> None:
    before = job.executors()
    attachment = job.attach(Wish(2))

    def full(_entry: object) -> None:
        raise OSError("No space left on device")

    attachment.journal.append = full  # type: ignore[method-assign]
    job.wait(lambda: not attachment.is_watching, "end of the watching")
    assert isinstance(attachment.failure, OSError), attachment.failure
    job.batches(2)
    assert job.executors() == before


def a_watcher_that_fails_is_left_out(job: Job) -> None:
    with job.attach(Wish(2)) as attachment:
        attachment.on_cycle(lambda _entry: {}["missing"])
        job.wait(lambda: len(cycles(attachment)) >= 2, "2 cycles")
    assert attachment.failure is None


def an_idle_source_goes_to_the_minimum_and_comes_back(job: Job) -> None:
    with job.attach("ds2", idle=3, interval=2, initial_executors=2):
        job.feed.records_per_s = 0.0
        job.wait(lambda: len(job.executors()) == 1, "the minimum")
        job.feed.records_per_s = 150.0
        job.wait(lambda: len(job.executors()) >= 2, "more than the minimum")


def main(root: Path, home: Path) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    job = Job(root, home)
    for check in (
        dry_run_changes_nothing,
        detach_leaves_the_job_as_it_is,
        a_failing_attachment_leaves_the_job_as_it_is,
        a_watcher_that_fails_is_left_out,
        an_idle_source_goes_to_the_minimum_and_comes_back,
    ):
        check(job)
        logging.info("held: %s", check.__name__)
    job.feed.stop()
    job.query.processAllAvailable()
    assert job.query.exception() is None
    job.query.stop()
    lost, repeated = stepload.difference(root, job.feed.written)
    assert (lost, repeated) == (0, 0), (lost, repeated, job.feed.written)
    job.spark.stop()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except BaseException:
        logging.exception("failed")
        os._exit(1)
