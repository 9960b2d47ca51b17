"""What is known of one run of a query between two observations, and how a window of it is closed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.spark.attach.application import ExecutorInfo
from sluice.spark.observe.events import Batch, BatchStage
from sluice.spark.observe.window import BatchLog, BatchSpan, QueryWindow, SlotChanges, backlog_of


@dataclass(frozen=True, kw_only=True)
class QueryStatus:
    """What a query does now."""

    now_s: float
    in_batch: bool
    running_tasks: int | None = None


def is_in_batch(status: Mapping[str, Any]) -> bool:
    """By Spark's status of a query: between two batches it waits for data or for its trigger."""
    return bool(status["isTriggerActive"]) and not status["message"].startswith("Waiting")


def has_data(status: Mapping[str, Any]) -> bool:
    """Whether the batch has records: one that only looks for them is no work."""
    return is_in_batch(status) and bool(status["isDataAvailable"])


class QueryObserver:
    """One run of a query, on the cores of all executors."""

    def __init__(self, run_id: str, trigger_s: float | None, began_s: float) -> None:
        self.run_id = run_id
        self._trigger_s = trigger_s
        self._log = BatchLog(began_s)

    def add(self, batches: Sequence[Batch], stages: Iterable[BatchStage]) -> None:
        self._log.batches += batches
        self._log.add_stages(stages)

    def close_window(
        self, status: QueryStatus, executors: Sequence[ExecutorInfo], core_changes: SlotChanges
    ) -> QueryWindow:
        """The window since the last one that had a batch or was idle.

        It ends with the last batch while another is running, for Spark does not tell when that one began. The first
        batch with records is in no window: it loads classes and compiles.
        """
        is_cold = self._log.before is None
        if is_cold:
            self._log.skip_first()
        unfinished = status.in_batch or (is_cold and self._log.before is not None) or not self._is_due(status.now_s)
        span = self._log.close(status.now_s, self._last_end_s(status) if unfinished else None)
        cores = sum(executor.cores for executor in executors)
        return QueryWindow(
            span=span,
            parallelism=max(1, len(executors)),
            slots=cores,
            slot_changes=core_changes or [(span.began_s, cores)],
            backlog=backlog_of(span),
            trigger_s=self._trigger_s,
            is_idle=not unfinished and self._found_nothing(span),
            running_tasks=status.running_tasks if status.in_batch and not span.batches and not is_cold else None,
        )

    def _is_due(self, now_s: float) -> bool:
        """Whether a batch should have come by now; that none came earlier says nothing about the load."""
        return self._trigger_s is None or now_s - self._log.began_s >= 1.5 * self._trigger_s

    def _last_end_s(self, status: QueryStatus) -> float:
        if not self._log.batches:
            return self._log.began_s
        return self._log.batches[-1].ended_s if status.in_batch else status.now_s

    def _found_nothing(self, span: BatchSpan) -> bool:
        return not span.batches and not self._log.batches and not (span.before and span.before.lag_records)
