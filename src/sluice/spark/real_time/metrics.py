"""What the stages of a real-time query did, in the words of policies. Pure.

A task runs as long as its batch, whether records come or not, so busy is its CPU time: of the stage's tasks, over the
time they had. Stages tell when their batch ends; a window without an ended batch knows its backlog and no rates. All
stages of a batch pass on the records that it read, as long as none tells otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sluice.model import OperatorMetrics
from sluice.spark.observe.events import Batch, BatchStage


@dataclass(frozen=True)
class RealTimeBatch:
    """A batch that is over, its stages in the order of the records, and what was left behind it."""

    batch: Batch
    stages: Sequence[BatchStage]
    lag_records: int

    @property
    def latency_s(self) -> float:
        """How long a record waits at the rate of the batch, if the lag stays; about nothing while it keeps up."""
        rate = self.batch.records / self.batch.duration_s if self.batch.duration_s else 0.0
        return self.lag_records / rate if rate else 0.0


@dataclass(frozen=True, kw_only=True)
class StageWindow:
    """One stage since the last observation."""

    position: int
    """0 for the stage that reads."""
    tasks: int
    batches: Sequence[RealTimeBatch]
    arrival_rate: float | None = None
    lag_rate: float | None = None


def stage_metrics(window: StageWindow) -> OperatorMetrics:
    known: dict[str, Any] = {"parallelism": window.tasks}
    reads = window.position == 0
    last = window.batches[-1] if window.batches else None
    if reads:
        known |= {"arrival_rate": window.arrival_rate, "lag_rate": window.lag_rate}
        known["lag"] = last.lag_records if last else None
        known["latency_s"] = last.latency_s if last else None
    measured = [(one, one.stages[window.position]) for one in window.batches if len(one.stages) > window.position]
    length_s = sum(one.batch.duration_s for one, _ in measured)
    if last is not None and length_s > 0:
        records = sum(one.batch.records for one, _ in measured)
        known |= {"batch_s": last.batch.duration_s, "input_rate": records / length_s}
        if reads:
            known["output_rate"] = records / length_s
        known |= _shares(measured, records, window.tasks)
    return OperatorMetrics(**known)


def _shares(measured: Sequence[tuple[RealTimeBatch, BatchStage]], records: int, tasks: int) -> dict[str, float]:
    cpu_s = sum(stage.cpu_s for _, stage in measured)
    there_s = sum(stage.tasks * one.batch.duration_s for one, stage in measured)
    busy = min(1.0, cpu_s / there_s)
    shares = {"busy": busy, "cpu": busy, "idle": 1.0 - busy}
    if cpu_s > 0 and records:
        shares["true_input_rate"] = records / cpu_s * tasks
        shares["true_output_rate"] = records / cpu_s * tasks
    return shares


def in_order(stages: Sequence[BatchStage]) -> tuple[BatchStage, ...]:
    """Spark numbers a stage after those it reads from."""
    return tuple(sorted(stages, key=lambda stage: stage.stage_id))
