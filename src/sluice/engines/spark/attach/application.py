"""A Spark application as policies see it: one operator per query, executors as instances. Pure.

All queries of an application share its executors, so every operator shows the same parallelism, and its busy share is
the part of all task slots that its tasks used. What the queries wish is turned into one number of executors: each wish
is a factor on the present number, and the factors are weighed by how much of the work is whose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sluice.engines.spark.metrics import Batch, Stage
from sluice.model import Graph, Observation, Operator, OperatorMetrics

NO_QUERY = "application"
"""The operator an application without a running query consists of: a graph needs one."""


@dataclass(frozen=True, kw_only=True)
class ExecutorInfo:
    """One executor as the status store tells it."""

    executor_id: str
    cores: int
    active_tasks: int
    holds_blocks: bool
    added_s: float


@dataclass(frozen=True, kw_only=True)
class QueryWindow:
    """What one query did in a window: its finished batches, their stages, and what still waits where Spark says so."""

    batches: Sequence[Batch]
    stages: Sequence[Stage]
    lag_records: int | None
    lag_before_records: int | None
    trigger_s: float | None
    running: bool


def executors_needed(wishes: Mapping[str, int], work: Mapping[str, float]) -> int:
    """One number for all queries: the mean of their wishes, weighed by their shares of the work, rounded up.

    With one query this is its wish. With several, `p * sum(weight * wish / p)`: each wish is a factor on the executors
    all of them share, and one that holds has the factor 1.
    """
    total = sum(work.values())
    weights = {name: work[name] / total if total > 0 else 1 / len(wishes) for name in wishes}
    return max(1, math.ceil(sum(weights[name] * wish for name, wish in wishes.items()) - 1e-9))


def read_batch(progress: Mapping[str, Any]) -> Batch:
    """A progress event of any query, whatever its sources' offsets look like."""
    started_s = datetime.fromisoformat(progress["timestamp"]).timestamp()
    states = progress.get("stateOperators", [])
    return Batch(
        run_id=progress["runId"],
        batch_id=int(progress["batchId"]),
        started_s=started_s,
        ended_s=started_s + progress["durationMs"].get("triggerExecution", 0) / 1000,
        records={"all": int(progress["numInputRows"])},
        state_bytes=float(sum(state.get("memoryUsedBytes", 0) for state in states)) if states else None,
        state_io_bytes=0.0,
    )


def read_lag(progress: Mapping[str, Any]) -> int | None:
    """Records behind the newest offsets, where the sources tell: whole-number offsets, or Kafka's own metric."""
    lags = [_source_lag(source) for source in progress.get("sources", [])]
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None


def _source_lag(source: Mapping[str, Any]) -> int | None:
    end, latest = _plain_offset(source.get("endOffset")), _plain_offset(source.get("latestOffset"))
    if end is not None and latest is not None:
        return max(0, latest - end)
    behind = (source.get("metrics") or {}).get("avgOffsetsBehindLatest")
    partitions = sum(len(topic) for topic in (source.get("endOffset") or {}).values()) if behind is not None else 0
    return round(float(behind) * partitions) if behind is not None else None


def _plain_offset(offset: Any) -> int | None:
    """The offset as a count of records, for sources that count them; null for all others."""
    if isinstance(offset, dict):
        offset = offset.get("offset")
    return offset if isinstance(offset, int) and not isinstance(offset, bool) else None


def observe_application(
    queries: Mapping[str, QueryWindow],
    executors: Sequence[ExecutorInfo],
    *,
    core_seconds: float,
    time_s: float,
    interval_s: float,
) -> Observation:
    """`core_seconds` is the task time there was: cores of all executors, integrated over the window."""
    parallelism = max(1, len(executors))
    if not queries:
        return Observation(
            time_s=time_s, interval_s=interval_s, operators={NO_QUERY: OperatorMetrics(parallelism=parallelism)}
        )
    slots = sum(executor.cores for executor in executors)
    occupied = sum(executor.active_tasks for executor in executors) / slots if slots else None
    operators = {
        name: _query_metrics(window, parallelism, core_seconds, occupied, interval_s)
        for name, window in queries.items()
    }
    latencies = [metrics.latency_s for metrics in operators.values() if metrics.latency_s is not None]
    return Observation(
        time_s=time_s,
        interval_s=interval_s,
        operators=operators,
        latency_samples_s=(max(latencies),) if latencies else (),
    )


def _query_metrics(
    window: QueryWindow, parallelism: int, core_seconds: float, occupied: float | None, interval_s: float
) -> OperatorMetrics:
    known: dict[str, Any] = {
        "parallelism": parallelism,
        "lag": window.lag_records,
        "batch_interval_s": window.trigger_s,
    }
    lag_change = None
    if window.lag_records is not None and window.lag_before_records is not None:
        lag_change = window.lag_records - window.lag_before_records
        known["lag_rate"] = lag_change / interval_s
    if not window.batches:
        # a batch longer than the window has no figures yet, but its tasks show whether the executors are busy
        known |= {"busy": occupied} if window.running else {"busy": 0.0, "input_rate": 0.0}
        return OperatorMetrics(**known)
    records = sum(batch.total_records for batch in window.batches)
    length_s = max(interval_s, window.batches[-1].ended_s - window.batches[0].started_s)
    busy = min(1.0, sum(stage.run_s for stage in window.stages) / core_seconds) if core_seconds > 0 else None
    input_rate = records / length_s
    batch_s = sum(batch.duration_s for batch in window.batches) / len(window.batches)
    known |= {
        "input_rate": input_rate,
        "output_rate": input_rate,
        "busy": busy,
        "cpu": min(1.0, sum(stage.cpu_s for stage in window.stages) / core_seconds) if core_seconds > 0 else None,
        "idle": None if busy is None else 1.0 - busy,
        "backpressure": 0.0,
        "batch_s": batch_s,
        "arrival_rate": max(0.0, input_rate + (lag_change or 0) / interval_s),
        "latency_s": _latency_s(window, input_rate, batch_s),
    }
    if busy and records:
        known |= {"true_input_rate": input_rate / busy, "true_output_rate": input_rate / busy}
    states = [batch.state_bytes for batch in window.batches if batch.state_bytes is not None]
    if states:
        known["state_bytes"] = states[-1]
    return OperatorMetrics(**known)


def _latency_s(window: QueryWindow, input_rate: float, batch_s: float) -> float:
    """A record waits half the time between two batches on average, then for its own batch, and behind the lag."""
    starts = [batch.started_s for batch in window.batches]
    gap_s = (starts[-1] - starts[0]) / (len(starts) - 1) if len(starts) > 1 else batch_s
    behind_s = (window.lag_records or 0) / input_rate if input_rate > 0 else 0.0
    return gap_s / 2 + batch_s + behind_s


def application_graph(names: Sequence[str], min_executors: int, useful_executors: Mapping[str, int]) -> Graph:
    """`useful_executors` caps what a query can use: executors beyond one core per task of its widest stage idle."""
    return Graph(
        operators=tuple(
            Operator(
                name=name,
                min_parallelism=min_executors,
                max_parallelism=max(min_executors, useful_executors[name]) if name in useful_executors else None,
            )
            for name in names or (NO_QUERY,)
        )
    )


def choose_to_remove(executors: Sequence[ExecutorInfo], count: int) -> list[ExecutorInfo]:
    """Whom to let go: idle ones first, among them those that hold no blocks others need, the youngest first.

    Executors with running tasks are chosen only if there are not enough others; the caller decides whether to wait.
    """
    ranked = sorted(executors, key=lambda e: (e.active_tasks > 0, e.holds_blocks, -e.added_s, e.executor_id))
    return ranked[:count]
