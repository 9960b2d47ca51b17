"""attach under steps of the load, in seconds: the job of `attach_compared`, with Spark below `internals` replaced.

python -m benchmarks.attach_steps [--policy sluice --policy ds2 ...] [--group issue ...] [--runs]

`attach` itself runs, as in `attach_day`: observer, policy, guards, executors. Batches take what has arrived, a fixed
time beside it and eight tasks on the executors there are; executors come some seconds after they were requested, and
their first batch is slow. The step falls into another part of a decision's interval in every run. What comes out says
which of two policies is better under which steps; what they cost on a cluster, only the cluster tells.
"""

from __future__ import annotations

import argparse
import logging
import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import numpy as np

import sluice
from benchmarks.attach_compared import SETTINGS
from benchmarks.attach_day import EPOCH_S, RecordedApplication, recorded_spark

WRITTEN_S = 0.25
"""The source's files come so far apart."""
WARM_UP_S, WARM_UP_RATE = 12.0, 2.0
FIRST_BATCH_S, FIRST_USE_S = 4.0, 1.2
"""Beside its records: the first batch, and the first one that uses a new executor."""
IN_BATCH = {"isTriggerActive": True, "isDataAvailable": True, "message": "Processing new data"}
WAITING = {"isTriggerActive": False, "isDataAvailable": False, "message": "Waiting for next trigger"}


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A step up and back; rates in records/s."""

    seed: int = 0
    low: float = 30.0
    high: float = 200.0
    before_s: float = 20.0
    high_s: float = 60.0
    after_s: float = 70.0
    each: float = 100.0
    tasks: int = 8
    fixed_s: float = 0.45
    start_s: float = 2.7
    most: int = 4
    interval_s: float = 3.0
    cooldown_s: float = 9.0
    objective_s: float = 10.0
    trigger_s: float = 1.0

    @property
    def begins_s(self) -> float:
        return WARM_UP_S + self.seed * 0.55 % self.interval_s

    @property
    def ends_s(self) -> float:
        return self.begins_s + self.before_s + self.high_s + self.after_s

    def load(self, at_s: float) -> float:
        since_s = at_s - self.begins_s
        if since_s < 0:
            return WARM_UP_RATE
        return self.high if self.before_s <= since_s < self.before_s + self.high_s else self.low


def numbered(*situations: Situation) -> list[Situation]:
    return [replace(one, seed=number) for number, one in enumerate(situations)]


GROUPS: dict[str, list[Situation]] = {
    "issue": numbered(*[Situation()] * 12),
    "steps": numbered(
        *(
            Situation(low=low, high=high)
            for low, high in ((10, 195), (30, 260), (60, 150), (20, 330), (120, 280), (50, 110), (80, 180), (40, 240))
        )
    ),
    "phases": numbered(
        *(
            Situation(before_s=before_s, high_s=high_s, after_s=after_s)
            for before_s, high_s, after_s in ((40, 40, 70), (60, 90, 90), (10, 100, 60), (90, 30, 60), (30, 120, 120))
        )
    ),
    "slots": numbered(
        Situation(each=50, most=8, high=250, tasks=16),
        Situation(each=200, most=4, low=50, high=500, start_s=4, fixed_s=0.6),
        Situation(most=8, high=400, tasks=16, start_s=6, fixed_s=0.4),
        Situation(most=8, low=100, high=500, tasks=32, start_s=5, fixed_s=0.3),
        Situation(each=40, most=6, low=20, high=150, tasks=12, start_s=3, fixed_s=0.8),
    ),
    "settings": numbered(
        *(
            Situation(interval_s=interval_s, cooldown_s=cooldown_s, objective_s=objective_s)
            for interval_s, cooldown_s, objective_s in ((3, 9, 5), (3, 9, 20), (4, 20, 10), (3, 0, 10), (5, 15, 10))
        )
    ),
}


@dataclass
class Batch:
    began_s: float
    ends_s: float
    records: int
    run_s: float
    fixed_s: float
    arrived: list[tuple[float, float]]
    """When the records of a file were there, and how many."""


@dataclass
class SteppedApplication(RecordedApplication):
    """Its batches end when their work is done, and until then only their tasks are seen."""

    situation: Situation = field(default_factory=Situation)
    executor_seconds: float = 0.0
    waited: list[tuple[float, float]] = field(default_factory=list)
    """How long records took, and how many."""
    counts: list[tuple[float, int]] = field(default_factory=list)
    """Seconds from the load's beginning, and executors from then on."""

    def __post_init__(self) -> None:
        self._chance = random.Random(self.situation.seed)
        self._batch: Batch | None = None
        self._used: set[str] = set()

    def sleep(self, duration_s: float) -> None:
        until_s = self.now_s + duration_s
        while self.now_s < until_s - 1e-9:
            due_s = self._batch.ends_s if self._batch else self.free_s
            starts = [at_s for at_s in self.executors.values() if at_s > self.now_s]
            next_s = min(until_s, max(due_s, self.now_s), *starts)
            here = len(self._here())
            if not self.counts or self.counts[-1][1] != here:
                self.counts.append((self.now_s - self.situation.begins_s, here))
            if self.situation.begins_s <= self.now_s < self.situation.ends_s:
                self.executor_seconds += here * (next_s - self.now_s)
            self.now_s = next_s
            if self._batch and next_s >= self._batch.ends_s:
                self._finish(self._batch)
            if not self._batch and next_s >= self.free_s:
                self._begin()
        if self.now_s >= self.until_s and self.ended is not None:
            self.ended.set()

    def _here(self) -> set[str]:
        return {name for name, at_s in self.executors.items() if at_s <= self.now_s}

    def _begin(self) -> None:
        case, chance = self.situation, self._chance
        seen_s = int(self.now_s / WRITTEN_S) * WRITTEN_S
        files = np.arange(self.read_until_s, seen_s, WRITTEN_S)
        arrived = [(at_s + WRITTEN_S, case.load(at_s + WRITTEN_S / 2) * WRITTEN_S) for at_s in files]
        records = int(sum(count for _, count in arrived) + chance.random())
        if not records:
            self.free_s = (int(self.now_s / case.trigger_s) + 1) * case.trigger_s
            return
        here = self._here()
        rounds = math.ceil(case.tasks / max(1, len(here)))
        work_s = records / case.each
        fixed_s = case.fixed_s * chance.uniform(0.7, 1.5) + (0 if self.batches else FIRST_BATCH_S)
        first_s = FIRST_USE_S if here - self._used else 0.0
        took_s = fixed_s + first_s + work_s / case.tasks * rounds * chance.uniform(1, 1.04)
        run_s = 1.02 * work_s + 0.7 * first_s + chance.uniform(0, 0.4)
        self._used |= here
        self.read_until_s = seen_s
        self._batch = Batch(self.now_s, self.now_s + took_s, records, run_s, fixed_s, arrived)
        self.jobs[self.batches] = {
            "jobId": self.batches,
            "status": "RUNNING",
            "description": f"counts\nbatch = {self.batches}",
            "jobGroup": "run-1",
            "stageIds": [self.batches],
            "numActiveTasks": min(len(here), case.tasks),
        }

    def _finish(self, batch: Batch) -> None:
        number, self._batch, self.batches = self.batches, None, self.batches + 1
        self.stages[number] = {
            "status": "COMPLETE",
            "numTasks": self.situation.tasks,
            "executorRunTime": batch.run_s * 1e3,
            "executorCpuTime": batch.records * 1e5,
            "executorDeserializeCpuTime": 0,
            "inputRecords": batch.records,
            "outputRecords": batch.records,
            "outputBytes": batch.records * 20,
            "firstTaskLaunchedTime": (EPOCH_S + batch.began_s + 0.4 * batch.fixed_s) * 1e3,
            "completionTime": (EPOCH_S + batch.ends_s - 0.3 * batch.fixed_s) * 1e3,
            "attemptId": 0,
            "numFailedTasks": 0,
        }
        self.jobs[number] |= {"status": "SUCCEEDED", "numActiveTasks": 0}
        case = self.situation
        self.waited += [
            (batch.ends_s - at_s, count) for at_s, count in batch.arrived if case.begins_s <= at_s < case.ends_s
        ]
        self.listener(self._progress(number, batch.began_s, batch.ends_s - batch.began_s, batch.records))
        self.free_s = max(batch.ends_s, (int(batch.began_s / case.trigger_s) + 1) * case.trigger_s)

    def request(self, _spark: object, total: int) -> None:
        while len(self.executors) < total:
            start_s = self.situation.start_s * self._chance.uniform(0.85, 1.15)
            self.executors[str(self.made)] = self.now_s + start_s
            self.made += 1

    def queries(self, spark: object) -> Any:
        seen = super().queries(spark)
        (query,) = seen.running()
        query.status = lambda: IN_BATCH if self._batch else WAITING
        query.trigger_interval_s = lambda: self.situation.trigger_s
        return SimpleNamespace(**vars(seen))


@dataclass(frozen=True)
class Outcome:
    executor_seconds: float
    p50_s: float
    p95_s: float
    late: float
    """Share of the records that took longer than the objective."""
    executors: Sequence[tuple[float, int]]


def run(policy: str, case: Situation) -> Outcome:
    application = SteppedApplication(case.ends_s, lambda _: None, situation=case)
    with tempfile.TemporaryDirectory() as folder, recorded_spark(application) as spark:
        attachment = sluice.attach(
            spark,
            policy,
            policy_settings=SETTINGS.get(policy),
            max_executors=case.most,
            interval=case.interval_s,
            cooldown=case.cooldown_s,
            objective=f"latency<{case.objective_s:g}s",
            journal=Path(folder) / "journal.jsonl",
        )
        attachment._thread.join()
        assert attachment.failure is None, attachment.failure
    waited, counts = np.array(sorted(application.waited)).T
    share = np.cumsum(counts) / counts.sum()
    p50_s, p95_s = (float(waited[np.searchsorted(share, part)]) for part in (0.5, 0.95))
    late = float(counts[waited > case.objective_s].sum() / counts.sum())
    return Outcome(application.executor_seconds, p50_s, p95_s, late, application.counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", help="repeatable; sluice and ds2 by default")
    parser.add_argument("--group", action="append", choices=tuple(GROUPS), help="repeatable; all by default")
    parser.add_argument("--runs", action="store_true", help="every run's executors, too")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| situations | runs | policy | executor-seconds | p50 s | p95 s | records late |")
    print("|---|---|---|---|---|---|---|")
    for group in options.group or GROUPS:
        for policy in options.policy or ("sluice", "ds2"):
            found = [run(policy, case) for case in GROUPS[group]]
            used, p50_s, p95_s, late = (
                fmean(getattr(one, name) for one in found) for name in ("executor_seconds", "p50_s", "p95_s", "late")
            )
            print(f"| {group} | {len(found)} | {policy} | {used:.0f} | {p50_s:.1f} | {p95_s:.1f} | {late:.1%} |")
            if options.runs:
                for one in found:
                    changes = " ".join(f"{count}@{at_s:.0f}" for at_s, count in one.executors)
                    print(f"  {one.executor_seconds:.0f} / {one.p95_s:.1f} s: {changes}")


if __name__ == "__main__":
    main()
