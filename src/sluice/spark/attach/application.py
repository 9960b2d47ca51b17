"""A Spark application as policies see it: one operator per query, executors as instances. Pure.

All queries of an application share its executors, so every operator shows the same parallelism, and its busy share is
the part of all task slots that its tasks used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.model import Graph, Observation, Operator, OperatorMetrics
from sluice.spark.metrics import Batch, Stage, batch_span_s

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
class QueryBatch(Batch):
    """A finished batch of any query; the lag is what was left behind it when it began, where its sources tell."""

    lag_records: int | None = None


@dataclass(frozen=True, kw_only=True)
class QueryWindow:
    """What one query did in a window of whole batches: it ends now if the query waits, else with its last batch."""

    began_s: float
    ended_s: float
    now_s: float
    batches: Sequence[QueryBatch]
    before: QueryBatch | None
    """The last batch of earlier windows."""
    stages: Sequence[Stage]
    core_seconds: float
    """The task time there was: cores of all executors, integrated over the window."""
    trigger_s: float | None
    running: bool
    is_cold: bool = False
    """No batch after the first with records is over: that one loads classes and compiles, its times mislead."""

    @property
    def length_s(self) -> float:
        return self.ended_s - self.began_s

    @property
    def records(self) -> int:
        return sum(batch.total_records for batch in self.batches)

    @property
    def input_rate(self) -> float:
        return self.records / self.length_s if self.length_s > 0 else 0.0

    @property
    def last(self) -> QueryBatch | None:
        return self.batches[-1] if self.batches else self.before

    @property
    def was_disturbed(self) -> bool:
        """Executors were lost in it: Spark counts again what was done again, and forgets the time of what was lost."""
        return bool(self.batches) and any(stage.repeated for stage in self.stages)

    @property
    def waits_for_trigger(self) -> bool:
        """No batch was due yet: that none came says nothing about the load."""
        return self.trigger_s is not None and self.now_s - self.began_s < 1.5 * self.trigger_s


def read_batch(progress: Mapping[str, Any]) -> QueryBatch:
    """A progress event of any query, whatever its sources' offsets look like."""
    started_s, ended_s = batch_span_s(progress)
    states = progress.get("stateOperators", [])
    return QueryBatch(
        run_id=progress["runId"],
        batch_id=int(progress["batchId"]),
        started_s=started_s,
        ended_s=ended_s,
        records={"all": int(progress["numInputRows"])},
        state_bytes=float(sum(state.get("memoryUsedBytes", 0) for state in states)) if states else None,
        state_io_bytes=0.0,
        lag_records=read_lag(progress),
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
    queries: Mapping[str, QueryWindow], executors: Sequence[ExecutorInfo], *, time_s: float, interval_s: float
) -> Observation:
    parallelism = max(1, len(executors))
    if not queries:
        return Observation(
            time_s=time_s, interval_s=interval_s, operators={NO_QUERY: OperatorMetrics(parallelism=parallelism)}
        )
    operators = {name: _query_metrics(window, executors) for name, window in queries.items()}
    latencies = [metrics.latency_s for metrics in operators.values() if metrics.latency_s is not None]
    return Observation(
        time_s=time_s,
        interval_s=interval_s,
        operators=operators,
        latency_samples_s=(max(latencies),) if latencies else (),
    )


def _query_metrics(window: QueryWindow, executors: Sequence[ExecutorInfo]) -> OperatorMetrics:
    known: dict[str, Any] = {
        "parallelism": max(1, len(executors)),
        "lag": window.last.lag_records if window.last else None,
        "batch_interval_s": window.trigger_s,
    }
    if window.is_cold:
        return OperatorMetrics(**known)
    slots = sum(executor.cores for executor in executors)
    if window.was_disturbed:
        known |= _delays(window)
    elif window.batches and window.length_s > 0:
        known |= _rates(window, slots)
    elif window.running:
        # a batch longer than the window has no figures yet, but its tasks show whether the executors are busy
        known["busy"] = min(1.0, sum(executor.active_tasks for executor in executors) / slots) if slots else None
        known["latency_s"] = window.now_s - window.before.ended_s if window.before else None
    elif not window.waits_for_trigger:
        known |= {"busy": 0.0, "input_rate": 0.0, "arrival_rate": 0.0}
    return OperatorMetrics(**known)


def _rates(window: QueryWindow, slots: int) -> dict[str, Any]:
    run_s, cpu_s = sum(stage.run_s for stage in window.stages), sum(stage.cpu_s for stage in window.stages)
    arrival_rate, lag_rate = _arrival(window)
    rates: dict[str, Any] = {
        "input_rate": window.input_rate,
        "output_rate": window.input_rate,
        "backpressure": 0.0,
        "arrival_rate": arrival_rate,
        "lag_rate": lag_rate,
        **_delays(window),
    }
    if window.core_seconds > 0:
        busy = min(1.0, run_s / window.core_seconds)
        rates |= {"busy": busy, "idle": 1.0 - busy, "cpu": min(1.0, cpu_s / window.core_seconds)}
    if window.records and run_s > 0 and window.core_seconds > 0:
        true_rate = _true_rate(window, run_s) * slots
        rates |= {"true_input_rate": true_rate, "true_output_rate": true_rate}
    states = [batch.state_bytes for batch in window.batches if batch.state_bytes is not None]
    if states:
        rates["state_bytes"] = states[-1]
    return rates


def _true_rate(window: QueryWindow, run_s: float) -> float:
    """Records/s one core would do without waiting: per second of task time, but not less than was shown.

    Small batches spend their task time on what every task costs, however few its records; larger ones would not. That
    the query waited between them shows that the cores there were could do more.
    """
    batches_s = min(window.length_s, sum(batch.duration_s for batch in window.batches))
    shown = window.records / (window.core_seconds * batches_s / window.length_s) if batches_s > 0 else 0.0
    return max(window.records / run_s, shown)


def _arrival(window: QueryWindow) -> tuple[float, float | None]:
    """Records/s that arrived, and the change of the lag.

    A batch takes what arrived since the one before it began, as far as its limit allows, and leaves the lag behind. So
    between the beginnings of two batches there arrived what the later ones read plus what the lag grew by. Where the
    lag is unknown this holds for sources without a limit; one that has both is known only by what it reads.
    """
    first, *later = [*([window.before] if window.before else []), *window.batches]
    span_s = later[-1].started_s - first.started_s if later else 0.0
    if span_s <= 0:
        return window.input_rate, None
    read = sum(batch.total_records for batch in later)
    if first.lag_records is None or later[-1].lag_records is None:
        return read / span_s, None
    grown = later[-1].lag_records - first.lag_records
    return max(0.0, (read + grown) / span_s), grown / span_s


def _delays(window: QueryWindow) -> dict[str, float]:
    """A record waits half the time between two batches on average, then for its own batch, and behind the lag."""
    batch_s = sum(batch.duration_s for batch in window.batches) / len(window.batches)
    starts = [batch.started_s for batch in window.batches]
    gap_s = (starts[-1] - starts[0]) / (len(starts) - 1) if len(starts) > 1 else batch_s
    lag_records = window.batches[-1].lag_records or 0
    behind_s = lag_records / window.input_rate if window.input_rate > 0 else 0.0
    return {"batch_s": batch_s, "latency_s": gap_s / 2 + batch_s + behind_s}


def useful_executors(stages: Sequence[Stage], cores_each: int) -> int | None:
    """Executors beyond one core per task idle; the widest stage that takes a tenth of the time or more counts."""
    total_s = sum(stage.run_s for stage in stages)
    widest = max((stage.tasks for stage in stages if stage.run_s >= total_s / 10), default=0)
    return -(-widest // max(1, cores_each)) if widest else None


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
        ),
        shared=True,
    )


def choose_to_remove(executors: Sequence[ExecutorInfo], count: int) -> list[ExecutorInfo]:
    """Whom to let go: idle ones first, among them those that hold no blocks others need, the youngest first.

    Executors with running tasks are chosen only if there are not enough others; the caller decides whether to wait.
    """
    ranked = sorted(executors, key=lambda e: (e.active_tasks > 0, e.holds_blocks, -e.added_s, e.executor_id))
    return ranked[:count]
