"""From a window to the metrics of an operator. Pure; what is unknown stays null.

* busy: slot time its tasks used over slot time there was; null where all of it went into starting processes. Stages
  that overlap in time share the slots: a batch uses no more than its slots times the time in which a stage of it ran.
* true rate: records per second of slot time used, times the slots there are now: what would be read if they never
  waited (DS2, equation 3). By the bound above it is never below what a window with a backlog showed.
* cpu: CPU time of the tasks in the JVM over slot time there was. Python workers are not in it.
* latency: how long the record being read has waited, where the input tells when it arrived. Otherwise half the time
  between two batches, the batch itself and, where the lag is known, the time it takes to read the lag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluice.model import Observation, OperatorMetrics
from sluice.spark.observe.events import Batch, BatchStage
from sluice.spark.observe.window import BatchSpan, QueryWindow, most_slots

Span = tuple[float, float]


def make_observation(
    windows: Mapping[str, QueryWindow],
    *,
    time_s: float,
    interval_s: float,
    edges: Sequence[tuple[str, str]] = (),
    latency_samples_s: Sequence[float] | None = None,
) -> Observation:
    """Without samples over the window, every batch is one; the longest of a query where no batch ended."""
    operators = {name: operator_metrics(window) for name, window in windows.items()}
    if latency_samples_s is None:
        of_batches = sorted(sample for window in windows.values() for sample in _batch_latencies_s(window))
        known = [metrics.latency_s for metrics in operators.values() if metrics.latency_s is not None]
        latency_samples_s = [latency_s for _, latency_s in of_batches] or [max(known, default=0.0)] * bool(known)
    return Observation(
        time_s=time_s,
        interval_s=interval_s,
        operators=operators,
        edges=tuple(edges),
        latency_samples_s=tuple(latency_samples_s),
    )


def operator_metrics(window: QueryWindow) -> OperatorMetrics:
    span, backlog = window.span, window.backlog
    known: dict[str, Any] = {
        "parallelism": window.parallelism,
        "lag": backlog.lag_records,
        "lag_rate": backlog.lag_rate,
        "arrival_rate": backlog.arrival_rate,
        "backpressure": None if window.held_back is None else _share(window.held_back),
        "batch_interval_s": window.trigger_s,
        "latency_s": _latency_s(window),
    }
    if backlog.lag_records is not None and backlog.bound_records is not None:
        known["buffer_usage"] = _share(backlog.lag_records / backlog.bound_records)
    if span.batches:
        known["batch_s"] = _mean_s(span.batches)
    if window.slot_seconds > 0 and (span.batches or window.is_idle) and not span.is_disturbed:
        known |= _rates(window) | _shares(window) | _true_rates(window)
    elif window.running_tasks is not None and window.slots:
        # a batch longer than the window has no figures yet, but its tasks show whether the slots are busy
        known["busy"] = _share(window.running_tasks / window.slots)
    return OperatorMetrics(**known)


def _rates(window: QueryWindow) -> dict[str, Any]:
    span = window.span
    moved = [batch.state_io_bytes for batch in span.batches]
    states = [batch.state_bytes for batch in span.batches if batch.state_bytes is not None]
    output = _output_records(window, span.batches)
    rates: dict[str, Any] = {
        "input_rate": span.records / span.length_s,
        "output_rate": None if output is None else output / span.length_s,
        "io_rate": sum(count or 0.0 for count in moved) / span.length_s if None not in moved else None,
        "state_bytes": states[-1] if states else None,
    }
    if window.is_idle and window.is_source:
        rates["arrival_rate"] = 0.0
    if window.is_operator and output is not None:
        rates["net_rate"] = sum(stage.output_bytes for stage in span.stages) / span.length_s
    return rates


def _shares(window: QueryWindow) -> dict[str, Any]:
    used_s = _slot_s_used(window, window.span.batches)
    if used_s is None:
        return {}
    busy = _share(used_s / window.slot_seconds)
    cpu = _share(sum(stage.cpu_s for stage in window.span.stages) / window.slot_seconds)
    shares = {"cpu": busy if window.paced else cpu}
    reading = {batch.key for batch in window.span.batches if batch.records}
    if reading and reading <= window.warm_ups:
        # starting processes is no useful work: over such a share the input rate would pass for the speed of a slot
        return shares
    return {"busy": busy, "idle": None if window.held_back is None else _share(1 - busy - window.held_back), **shares}


def _true_rates(window: QueryWindow) -> dict[str, float]:
    """Small batches spend their task time on what every task costs, however few its records; larger ones would not."""
    with_records = [batch for batch in window.span.batches if batch.records]
    telling = [batch for batch in with_records if batch.key not in window.warm_ups]
    used_s = _slot_s_used(window, telling)
    if not used_s:
        return {}
    per_slot = max(sum(batch.records for batch in telling) / used_s, _shown_per_slot(window, with_records))
    rates = {"true_input_rate": per_slot * window.slots}
    output = _output_records(window, telling)
    if output is not None:
        rates["true_output_rate"] = output / used_s * window.slots
    return rates


def _shown_per_slot(window: QueryWindow, batches: Sequence[Batch]) -> float:
    """Records/s that every slot verifiably read while batches ran, those that started processes among them."""
    there_s = sum(_slots_of(window, batch) * (batch.duration_s + batch.head_start_s) for batch in batches)
    return sum(batch.records for batch in batches) / there_s if there_s > 0 else 0.0


def _output_records(window: QueryWindow, batches: Sequence[Batch]) -> int | None:
    counts = [batch.output_records for batch in batches]
    known = [count for count in counts if count is not None]
    if window.is_operator and (not counts or len(known) < len(counts)):
        stages = [window.span.stages_of(batch) for batch in batches]
        lacking = any(batch.records and not found for batch, found in zip(batches, stages, strict=True))
        return None if lacking else sum(stage.output_records for found in stages for stage in found)
    return sum(known) if known and len(known) == len(counts) else None


def _slot_s_used(window: QueryWindow, batches: Sequence[Batch]) -> float | None:
    """Slot time that went into these batches; null if the stages of one are not known."""
    total_s = 0.0
    read_until_s = float("-inf")
    for batch in batches:
        stages = _stages_on_slots(window, batch)
        if not stages:
            if batch.records:
                return None
            continue
        # the slots of a paced batch worked ahead of it, but not before they had finished the one before
        spans = [_extended(_span(stage, batch), batch.head_start_s, read_until_s) for stage in stages]
        read_until_s = max(ended_s for _, ended_s in spans)
        run_s = sum(stage.run_s + batch.head_start_s * stage.tasks for stage in stages)
        run_s /= batch.scans if window.paced else 1
        total_s += min(run_s, _slots_of(window, batch) * _union_s(spans))
    return total_s


def _stages_on_slots(window: QueryWindow, batch: Batch) -> list[BatchStage]:
    """The stages whose tasks use the slots.

    A paced slot is a task that reads: what it does is in its pace, and the tasks that keep state behind a shuffle, as
    many as there are state partitions, come on top. Without pacing all tasks count.
    """
    return [stage for stage in window.span.stages_of(batch) if stage.input_records or not window.paced]


def _slots_of(window: QueryWindow, batch: Batch) -> int:
    """The most a batch had. An operator's takes effect with the next batch, whose tasks show it."""
    reading = sum(stage.tasks for stage in window.span.stages_of(batch) if stage.input_records) // batch.scans
    if window.is_operator and reading:
        return reading
    return most_slots(window.slot_changes, batch.started_s, batch.ended_s)


def _span(stage: BatchStage, batch: Batch) -> Span:
    """When the stage ran; where Spark does not tell, all the time of its batch."""
    if stage.started_s is None or stage.ended_s is None:
        return batch.started_s, batch.ended_s
    return stage.started_s, stage.ended_s


def _extended(span: Span, head_start_s: float, not_before_s: float) -> Span:
    began_s, ended_s = span
    return min(began_s, max(began_s - head_start_s, not_before_s)), ended_s


def _union_s(spans: Sequence[Span]) -> float:
    """The time covered by at least one span."""
    total_s, until_s = 0.0, float("-inf")
    for began_s, ended_s in sorted(spans):
        total_s += max(0.0, ended_s - max(began_s, until_s))
        until_s = max(until_s, ended_s)
    return total_s


def _latency_s(window: QueryWindow) -> float | None:
    span = window.span
    if window.backlog.waited_s is not None or not window.is_source:
        return window.backlog.waited_s
    if not span.batches:
        return span.now_s - span.before.ended_s if window.running_tasks is not None and span.before else None
    starts = [batch.started_s for batch in span.batches]
    batch_s = _mean_s(span.batches)
    gap_s = (starts[-1] - starts[0]) / (len(starts) - 1) if len(starts) > 1 else batch_s
    behind_s = _behind_s(span, window.backlog.lag_records)
    return None if behind_s is None else gap_s / 2 + batch_s + behind_s


def _batch_latencies_s(window: QueryWindow) -> list[tuple[float, float]]:
    """(when it ended, latency) of every batch with records, by the same rule as that of the whole window."""
    span, waited_s = window.span, window.backlog.waited_s
    if not window.is_source:
        return []
    found, before = [], span.before
    for batch in span.batches:
        gap_s = batch.duration_s if before is None else batch.started_s - before.started_s
        before = batch
        behind_s = _behind_s(span, batch.lag_records)
        latency_s = gap_s / 2 + batch.duration_s + behind_s if behind_s is not None else None
        if waited_s is not None:
            latency_s = waited_s
        if batch.records and latency_s is not None:
            found.append((batch.ended_s, max(0.0, latency_s)))
    return found


def _behind_s(span: BatchSpan, lag_records: int | None) -> float | None:
    """The time it takes to read the lag at the window's rate; no part of the latency where the lag is unknown."""
    if not lag_records:
        return 0.0
    return lag_records * span.length_s / span.records if span.records else None


def _mean_s(batches: Sequence[Batch]) -> float:
    return sum(batch.duration_s for batch in batches) / len(batches)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
