"""From Spark's JSON to an observation: pure, so that it can be tested on what Spark once said.

Inputs are Spark's progress events (one per micro-batch), the stage data of its status store (run time and CPU time of
tasks), and a few counters of the topics. A window of an operator is made of whole batches: it ends now if the operator
waits, or where the running batch began. What happens in a batch that is not over belongs to the next window; a window
without a finished batch knows its lag and no rates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sluice.model import Observation, OperatorMetrics

_BATCH = re.compile(r"batch = (\d+)")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One finished micro-batch as its progress event tells it. Times are Unix time."""

    run_id: str
    batch_id: int
    started_s: float
    ended_s: float
    records: Mapping[str, int]
    """Topic -> records read from it."""
    scans: int = 1
    """How often a task per slot read: once per input, once more for an input that is joined with itself."""
    head_start_s: float = 0.0
    """How long paced slots had worked when the batch was planned."""
    state_bytes: float | None
    state_io_bytes: float

    @property
    def duration_s(self) -> float:
        return self.ended_s - self.started_s

    @property
    def total_records(self) -> int:
        return sum(self.records.values())


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One finished stage: what its tasks took, summed over them."""

    batch_id: int
    tasks: int
    run_s: float
    cpu_s: float
    input_records: int
    """Records read from topics: 0 for a stage that only reads what another one shuffled."""
    output_records: int
    output_bytes: int
    repeated: bool = False
    """Some of its tasks were lost and done again: the figures are not those of its records."""


def batch_span_s(progress: Mapping[str, Any]) -> tuple[float, float]:
    """Unix time of a batch's begin and end; Spark's `timestamp` is when its trigger fired."""
    started_s = datetime.fromisoformat(progress["timestamp"]).timestamp()
    return started_s, started_s + progress["durationMs"].get("triggerExecution", 0) / 1000


def read_progress(progress: Mapping[str, Any]) -> Batch:
    """A progress event of a query that reads topics."""
    started_s, ended_s = batch_span_s(progress)
    states = progress.get("stateOperators", [])
    return Batch(
        run_id=progress["runId"],
        batch_id=int(progress["batchId"]),
        started_s=started_s,
        ended_s=ended_s,
        records=records_per_topic(progress),
        scans=max(1, sum(_scans(source) for source in progress.get("sources", []))),
        head_start_s=max((source["endOffset"].get("head_start_s", 0.0) for source in progress["sources"]), default=0.0),
        state_bytes=sum(_state_bytes(state) for state in states) if states else None,
        state_io_bytes=sum(
            state["customMetrics"].get(f"rocksdbTotalBytes{way}", 0) for state in states for way in ("Read", "Written")
        ),
    )


def records_per_topic(progress: Mapping[str, Any]) -> dict[str, int]:
    """Rows Spark counted per topic. A topic that a query reads twice (a join with itself) is counted once."""
    found: dict[str, int] = {}
    for source in progress.get("sources", []):
        found[source["endOffset"]["topic"]] = int(source["numInputRows"]) // max(1, _scans(source))
    return found


def _scans(source: Mapping[str, Any]) -> int:
    rows = int(source["numInputRows"])
    moved = source["endOffset"]["offset"] - (source["startOffset"] or {"offset": 0})["offset"]
    if not moved:
        return 0
    return rows // moved if rows % moved == 0 else 1


def read_stages(job: Mapping[str, Any], stages: Sequence[Mapping[str, Any]]) -> list[Stage]:
    """The completed stages of a job of a streaming query, whose description names the batch it belongs to."""
    found = _BATCH.search(job.get("description") or "")
    if not found:
        return []
    return [
        Stage(
            batch_id=int(found.group(1)),
            tasks=int(stage["numTasks"]),
            run_s=stage["executorRunTime"] / 1e3,
            cpu_s=(stage["executorCpuTime"] + stage["executorDeserializeCpuTime"]) / 1e9,
            input_records=int(stage["inputRecords"]),
            output_records=int(stage["outputRecords"]),
            output_bytes=int(stage["outputBytes"]),
            repeated=stage["attemptId"] > 0 or stage["numFailedTasks"] > 0,
        )
        for stage in stages
        if stage["status"] == "COMPLETE"
    ]


def _state_bytes(state: Mapping[str, Any]) -> float:
    return float(state.get("memoryUsedBytes", 0)) + float(state["customMetrics"].get("rocksdbSstFileSize", 0))


def instance_seconds(changes: Sequence[tuple[float, int]], began_s: float, ended_s: float) -> float:
    """Parallelism integrated from `began_s` to `ended_s`; changes are (Unix time, parallelism from then on)."""
    total = 0.0
    for position, (since_s, parallelism) in enumerate(changes):
        until_s = changes[position + 1][0] if position + 1 < len(changes) else ended_s
        low = began_s if position == 0 else max(began_s, since_s)
        total += parallelism * max(0.0, min(ended_s, until_s) - low)
    return total


@dataclass(frozen=True, kw_only=True)
class OperatorWindow:
    """Everything measured about one operator between `began_s` and `ended_s` (Unix time, both between batches)."""

    parallelism: int
    began_s: float
    ended_s: float
    batches: Sequence[Batch]
    stages: Sequence[Stage]
    instance_seconds: float
    """Parallelism integrated over the window: differs from parallelism times length after a rescale."""
    warm_ups: frozenset[int] = frozenset()
    """Batches in which Python processes were started: their task time says nothing about the work."""
    lag_records: int
    lag_change_records: int
    """Over the engine's window, not this operator's."""
    held_back_s: float = 0.0
    arrived_records: int | None = None
    """Only for operators that read a topic from outside; over the engine's window."""
    bound_records: int | None = None
    """The lag at which those that write its inputs are held back."""
    paced: bool = False
    trigger_s: float

    @property
    def length_s(self) -> float:
        return self.ended_s - self.began_s


def operator_metrics(window: OperatorWindow, *, interval_s: float, latency_s: float | None) -> OperatorMetrics:
    """One operator's share of the observation; rates are null if no batch of the window is over."""
    known: dict[str, Any] = {
        "parallelism": window.parallelism,
        "lag": window.lag_records,
        "lag_rate": window.lag_change_records / interval_s,
        "backpressure": _share(window.held_back_s / interval_s),
        "batch_interval_s": window.trigger_s,
        "latency_s": latency_s,
    }
    if window.arrived_records is not None:
        known["arrival_rate"] = window.arrived_records / interval_s
    if window.bound_records is not None:
        known["buffer_usage"] = _share(window.lag_records / window.bound_records)
    if window.length_s > 0 and (window.batches or not window.lag_records):
        known |= _rates(window, backpressure=known["backpressure"])
    return OperatorMetrics(**known)


def _rates(window: OperatorWindow, *, backpressure: float) -> dict[str, Any]:
    batch_ids = {batch.batch_id for batch in window.batches}
    stages = [stage for stage in window.stages if stage.batch_id in batch_ids]
    states = [batch.state_bytes for batch in window.batches if batch.state_bytes is not None]
    rates: dict[str, Any] = {
        "input_rate": sum(batch.total_records for batch in window.batches) / window.length_s,
        "io_rate": sum(batch.state_io_bytes for batch in window.batches) / window.length_s,
    }
    if batch_ids <= {stage.batch_id for stage in stages}:
        rates |= _shares(window, stages, batch_ids, backpressure)
        rates["output_rate"] = sum(stage.output_records for stage in stages) / window.length_s
        rates["net_rate"] = sum(stage.output_bytes for stage in stages) / window.length_s
    rates |= _true_rates(window)
    if states:
        rates["state_bytes"] = states[-1]
    if window.batches:
        rates["batch_s"] = sum(batch.duration_s for batch in window.batches) / len(window.batches)
    return rates


def _shares(
    window: OperatorWindow, stages: Sequence[Stage], batch_ids: set[int], backpressure: float
) -> dict[str, float]:
    """Slot time used over slot time there was; CPU time is that of the JVM, Python workers are not in it."""
    busy = _share(_worked_s(window, batch_ids) / window.instance_seconds)
    cpu = sum(stage.cpu_s for stage in stages) / window.instance_seconds
    return {
        "busy": busy,
        "idle": _share(1 - busy - backpressure),
        # a paced slot sleeps where a real one would compute
        "cpu": busy if window.paced else cpu,
    }


def _worked_s(window: OperatorWindow, batch_ids: set[int]) -> float:
    """Slot time that went into these batches.

    Slots are the tasks that read: what a paced slot does is in their pace, and the tasks that keep state behind a
    shuffle, as many as there are state partitions, come on top of the slots. Without pacing all tasks count.
    """
    if not window.paced:
        return sum(stage.run_s for stage in window.stages if stage.batch_id in batch_ids)
    batches = {batch.batch_id: batch for batch in window.batches}
    return sum(
        (stage.run_s + batches[stage.batch_id].head_start_s * stage.tasks) / batches[stage.batch_id].scans
        for stage in window.stages
        if stage.batch_id in batch_ids and stage.input_records
    )


def _true_rates(window: OperatorWindow) -> dict[str, float]:
    """Records per second of task time, times the slots: what would be read if the slots never waited (DS2, eq. 3)."""
    telling = {batch.batch_id for batch in window.batches if batch.total_records} - window.warm_ups
    stages = [stage for stage in window.stages if stage.batch_id in telling]
    worked_s = _worked_s(window, telling)
    if worked_s <= 0 or telling - {stage.batch_id for stage in stages}:
        return {}
    slots = window.instance_seconds / window.length_s
    records = sum(batch.total_records for batch in window.batches if batch.batch_id in telling)
    return {
        "true_input_rate": records / worked_s * slots,
        "true_output_rate": sum(stage.output_records for stage in stages) / worked_s * slots,
    }


def make_observation(
    windows: Mapping[str, OperatorWindow],
    *,
    time_s: float,
    interval_s: float,
    edges: Sequence[tuple[str, str]],
    latencies_s: Mapping[str, float],
    latency_samples_s: Sequence[float],
) -> Observation:
    return Observation(
        time_s=time_s,
        interval_s=interval_s,
        operators={
            name: operator_metrics(window, interval_s=interval_s, latency_s=latencies_s.get(name))
            for name, window in windows.items()
        },
        edges=tuple(edges),
        latency_samples_s=tuple(latency_samples_s),
    )


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
