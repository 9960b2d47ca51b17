"""A day of attach in minutes: 100,000 batches; whether the driver's memory grows and decisions stay right.

python -m benchmarks.attach_day [--batches 100000] [--short]

Spark does a batch in a tenth of a second at best, so a day of it takes hours. Here `attach` itself runs, with its
thread, observer, policy, guards, executors and journal; what is replaced is Spark below `sluice.spark.internals` (its
answers have the fields of real ones) and the clock. The load repeats every two hours, so each of the day's periods must
see the same decisions. `python -m benchmarks.attach_long` is the stretch on a real Spark.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import sluice
from benchmarks.measuring import resident_mb
from sluice.journal.file import Rotation, read_runs
from sluice.journal.results import CycleReport
from sluice.spark.attach import engine as attach_engine
from sluice.spark.attach import executors as attach_executors
from sluice.spark.internals import executor_calls, status
from sluice.spark.observe import probe as observe_probe

EPOCH_S = 1_800_000_000.0
TRIGGER_S = 0.864
"""100,000 batches are a day."""
PERIOD_S = 7200.0
HIGH_S = (1800.0, 5400.0)
"""When in a period the load is high; bursts of a minute every ten on top."""
LOW, HIGH, BURST = 60.0, 330.0, 120.0
EACH_PER_S = 100.0
"""Records/s of an executor."""
FIXED_S = 0.2
START_S = 6.0
MOST = 8
INTERVAL_S = 4
ROTATION = Rotation(at_bytes=6_000_000)
"""A tenth of the usual, so that a day's journal is rotated some times."""
SAME_AT_LEAST = 0.95
"""Of the cycles of two periods: a batch does not begin at the same millisecond in both."""
RETAINED = 1000
"""Jobs that Spark's status store keeps."""


def load(at_s: float) -> float:
    phase_s = at_s % PERIOD_S
    base = HIGH if HIGH_S[0] <= phase_s < HIGH_S[1] else LOW
    return base + (BURST if phase_s % 600 < 60 else 0.0)


@dataclass
class RecordedApplication:
    """A driver's answers while its one query works through the load; time passes when the loop sleeps."""

    until_s: float
    on_period: Callable[[int], None]
    now_s: float = 0.0
    ended: threading.Event | None = None
    executors: dict[str, float] = field(default_factory=lambda: {"0": 0.0})
    """Id -> when it is there."""
    made: int = 1
    batches: int = 0
    free_s: float = 0.0
    read_until_s: float = 0.0
    jobs: dict[int, dict[str, Any]] = field(default_factory=dict)
    stages: dict[int, dict[str, Any]] = field(default_factory=dict)
    listener: Callable[[dict[str, Any]], None] = lambda _: None

    def sleep(self, duration_s: float) -> None:
        before = self.now_s
        self.now_s += duration_s
        while self.free_s <= self.now_s:
            self._run_batch()
        if int(before // PERIOD_S) != int(self.now_s // PERIOD_S):
            self.on_period(int(self.now_s // PERIOD_S))
        if self.now_s >= self.until_s and self.ended is not None:
            self.ended.set()

    def _run_batch(self) -> None:
        began_s = max(self.free_s, self.batches * TRIGGER_S)
        here = max(1, sum(1 for at_s in self.executors.values() if at_s <= began_s))
        records = round(load(began_s) * (began_s - self.read_until_s))
        took_s = FIXED_S + records / (EACH_PER_S * here)
        self.read_until_s = began_s
        number, self.batches = self.batches, self.batches + 1
        began_ms = (EPOCH_S + began_s) * 1e3
        self.stages[number] = {
            "status": "COMPLETE",
            "numTasks": 16,
            "executorRunTime": records / EACH_PER_S * 1e3,
            "executorCpuTime": records * 1e5,
            "executorDeserializeCpuTime": 0,
            "inputRecords": records,
            "outputRecords": records,
            "outputBytes": records * 20,
            "firstTaskLaunchedTime": began_ms + 50,
            "completionTime": began_ms + took_s * 1e3 - 50,
            "attemptId": 0,
            "numFailedTasks": 0,
        }
        self.jobs[number] = {
            "jobId": number,
            "status": "SUCCEEDED",
            "description": f"counts\nbatch = {number}",
            "jobGroup": "run-1",
            "stageIds": [number],
            "numActiveTasks": 0,
        }
        for kept in (self.jobs, self.stages):
            kept.pop(number - RETAINED, None)
        self.listener(self._progress(number, began_s, took_s, records))
        # a batch that takes longer than its trigger is followed by the next at once
        self.free_s = max(began_s + took_s, self.batches * TRIGGER_S)

    def _progress(self, number: int, began_s: float, took_s: float, records: int) -> dict[str, Any]:
        moment = datetime.fromtimestamp(EPOCH_S + began_s, timezone.utc)
        spent = {"triggerExecution": took_s * 1e3, "addBatch": took_s * 900}
        return {
            "id": "query-1",
            "runId": "run-1",
            "name": "counts",
            "batchId": number,
            "timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z",
            "durationMs": spent,
            "sources": [{"description": "files", "numInputRows": records, "startOffset": None, "endOffset": None}],
            "stateOperators": [{"memoryUsedBytes": 50_000, "customMetrics": {}}],
            "sink": {"numOutputRows": -1},
        }

    # what `internals` is asked, by its names there

    def request(self, _spark: object, total: int) -> None:
        while len(self.executors) < total:
            self.executors[str(self.made)] = self.now_s + START_S
            self.made += 1

    def release(self, _spark: object, ids: list[str]) -> list[str]:
        return [name for name in ids if self.executors.pop(name, None) is not None]

    def store(self, _spark: object) -> Any:
        return SimpleNamespace(
            job_ids=lambda _run: list(self.jobs),
            job=self.jobs.get,
            stage=self.stages.get,
            active_job_ids=list,
            executors=self._summaries,
        )

    def _summaries(self) -> list[dict[str, Any]]:
        here = [name for name, at_s in self.executors.items() if at_s <= self.now_s]
        return [
            {"id": name, "totalCores": 1, "activeTasks": 0, "rddBlocks": 0, "addTime": 0, "isActive": True}
            for name in here
        ]

    def queries(self, _spark: object) -> Any:
        status = {"isTriggerActive": False, "isDataAvailable": False, "message": "Waiting for next trigger"}
        query = SimpleNamespace(
            query_id="query-1",
            run_id="run-1",
            name="counts",
            status=lambda: status,
            trigger_interval_s=lambda: TRIGGER_S,
        )
        return SimpleNamespace(
            running=lambda: [query],
            run_ids=frozenset({"run-1"}),
            refresh=lambda: None,
            close=lambda: None,
            listen=lambda on_progress: setattr(self, "listener", on_progress),
        )

    def clock(self, ended: threading.Event) -> Any:
        self.ended = ended
        return SimpleNamespace(now_s=lambda: self.now_s, sleep_s=self.sleep)


@contextlib.contextmanager
def recorded_spark(application: RecordedApplication) -> Iterator[Any]:
    """In the place of a session."""
    settings = {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"}
    spark = SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app-1", appName="day"))
    clock = SimpleNamespace(time=lambda: EPOCH_S + application.now_s, monotonic=lambda: application.now_s)
    with contextlib.ExitStack() as stack:
        for where, name, what in (
            (sluice.spark.attach, "read_session", lambda _: ("yarn", settings)),
            (sluice.spark.attach, "ApplicationQueries", application.queries),
            (status, "StatusStore", application.store),
            (observe_probe, "StatusStore", application.store),
            (executor_calls, "request_executors", application.request),
            (executor_calls, "decommission_executors", application.release),
            (sluice.spark.attach, "Rotation", lambda: ROTATION),
            (attach_engine, "WallClock", application.clock),
            (attach_engine, "time", clock),
            (attach_executors, "time", clock),
        ):
            stack.enter_context(patch.object(where, name, what))
        yield spark


@dataclass
class Diary:
    """Of each period: memory of this process at its end, executors asked for, and what was done."""

    resident: list[float] = field(default_factory=list)
    targets: dict[int, list[int]] = field(default_factory=dict)
    actions: dict[int, list[str]] = field(default_factory=dict)

    def end_period(self, _period: int) -> None:
        gc.collect()
        self.resident.append(resident_mb(os.getpid()))

    def note(self, report: CycleReport) -> None:
        period, count = int(report.cycle.time_s // PERIOD_S), max(report.cycle.target.parallelism.values())
        self.targets.setdefault(period, []).append(count)
        if report.result.is_action and report.result.kind != "waiting":
            before = max(change[0] for change in report.result.changed.values())
            self.actions.setdefault(period, []).append(f"{before}->{count}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--short", action="store_true", help="34,000 batches: four periods")
    arguments = parser.parse_args()
    until_s = (34_000 if arguments.short else arguments.batches) * TRIGGER_S
    diary = Diary()
    application = RecordedApplication(until_s, diary.end_period)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, recorded_spark(application) as spark:
        attachment = sluice.attach(
            spark,
            max_executors=MOST,
            interval=INTERVAL_S,
            cooldown=20,
            objective="latency<10s",
            journal=Path(folder) / "journal.jsonl",
        )
        attachment.on_report(diary.note)
        attachment._thread.join()
        if attachment.failure is not None:
            sys.exit(f"attach failed: {attachment.failure!r}")
        journals = [_describe(file) for file in sorted(Path(folder).glob("journal.jsonl*"))]
    print(f"{application.batches} batches, {until_s / 3600:.1f} h in {time.monotonic() - began_s:.0f} s")
    print(f"driver, MB resident after each period: {', '.join(f'{mb:.0f}' for mb in diary.resident)}")
    print(f"journal, rotated at {ROTATION.at_bytes / 1e6:g} MB: {'; '.join(journals)}")
    whole = [period for period in sorted(diary.targets) if (period + 1) * PERIOD_S <= until_s]
    for period in whole:
        mean = sum(diary.targets[period]) / len(diary.targets[period])
        print(f"period {period}: {mean:.2f} executors on average, {len(diary.actions[period])} actions")
    # the first period begins with a policy that knows nothing
    first, last = whole[min(1, len(whole) - 1)], whole[-1]
    same = sum(a == b for a, b in zip(diary.targets[first], diary.targets[last], strict=False))
    print(f"cycles of the last period with the target of period {first}: {same} of {len(diary.targets[last])}")
    sys.exit(0 if same >= SAME_AT_LEAST * len(diary.targets[last]) else 1)


def _describe(file: Path) -> str:
    """Each file is one that can be read alone."""
    cycles = sum(len(run.reports) for run in read_runs(file))
    return f"{file.name} {file.stat().st_size / 1e6:.1f} MB, {cycles} cycles"


if __name__ == "__main__":
    main()
