"""Stages of a real-time query as operators: tasks run all the time, so CPU time says how busy they are."""

from __future__ import annotations

import pytest

from sluice.spark.observe.events import Batch, BatchStage
from sluice.spark.real_time.engine import end_position
from sluice.spark.real_time.metrics import RealTimeBatch, StageWindow, in_order, stage_metrics


def stage(number: int, tasks: int, cpu_s: float) -> BatchStage:
    return BatchStage(
        run_id="r",
        batch_id=1,
        stage_id=number,
        tasks=tasks,
        run_s=10.0 * tasks,
        cpu_s=cpu_s,
        input_records=0,
        output_records=0,
        output_bytes=0,
    )


def batch(records: int, *stages: BatchStage, lag: int = 0) -> RealTimeBatch:
    done = Batch(run_id="r", batch_id=1, started_s=0.0, ended_s=10.0, records=records)
    return RealTimeBatch(done, in_order(stages), lag)


def test_the_stage_that_works_is_as_busy_as_its_cpu_time() -> None:
    one = batch(8_000, stage(5, 4, 20.0), stage(4, 2, 2.0))
    work = stage_metrics(StageWindow(position=1, tasks=4, batches=[one]))
    assert (work.parallelism, work.busy, work.input_rate) == (4, 0.5, 800.0)
    assert work.true_input_rate == pytest.approx(8_000 / 20.0 * 4)
    assert (work.lag, work.arrival_rate) == (None, None)


def test_the_stage_that_reads_tells_the_backlog() -> None:
    one = batch(8_000, stage(4, 2, 2.0), stage(5, 4, 20.0), lag=400)
    read = stage_metrics(StageWindow(position=0, tasks=2, batches=[one], arrival_rate=900.0, lag_rate=3.0))
    assert (read.busy, read.lag, read.arrival_rate, read.lag_rate) == (0.1, 400, 900.0, 3.0)
    assert read.latency_s == 0.5


def test_a_window_without_an_ended_batch_knows_no_rates() -> None:
    read = stage_metrics(StageWindow(position=0, tasks=2, batches=[], arrival_rate=900.0))
    assert (read.parallelism, read.arrival_rate) == (2, 900.0)
    assert (read.busy, read.input_rate, read.true_input_rate, read.lag) == (None, None, None, None)


def test_a_batch_without_records_is_idle_and_says_nothing_about_its_speed() -> None:
    work = stage_metrics(StageWindow(position=1, tasks=1, batches=[batch(0, stage(4, 2, 0.1), stage(5, 1, 0.1))]))
    assert (work.input_rate, work.true_input_rate) == (0.0, None)


def test_the_end_of_a_batch_as_sparks_connector_tells_it() -> None:
    progress = {"sources": [{"endOffset": {"orders": {"1": 7, "0": 5}}}]}
    assert end_position(progress, "orders") == {"1": 7, "0": 5}
    assert end_position({"sources": [{"endOffset": None}]}, "orders") == {}
