"""From what Spark said in a run of WordCount to an observation, checked by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.spark.metrics import (
    OperatorWindow,
    instance_seconds,
    make_observation,
    operator_metrics,
    read_progress,
    read_stages,
    records_per_topic,
)

RECORDED = json.loads((Path(__file__).parent / "recorded" / "wordcount.json").read_text())


def window(operator: str, *, first: int, last: int, **more) -> OperatorWindow:
    """The window of these batches, from the start of the first to the end of the last."""
    found = RECORDED[operator]
    batches = [batch for batch in map(read_progress, found["progress"]) if first <= batch.batch_id <= last]
    began_s, ended_s = batches[0].started_s, batches[-1].ended_s
    settings = {
        "parallelism": 4,
        "began_s": began_s,
        "ended_s": ended_s,
        "batches": batches,
        "stages": [stage for job in found["jobs"] for stage in read_stages(job["job"], job["stages"])],
        "instance_seconds": 4 * (ended_s - began_s),
        "lag_records": 8928,
        "lag_change_records": 144,
        "trigger_s": 1.0,
    }
    return OperatorWindow(**{**settings, **more})


def test_three_batches_of_the_splitter():
    metrics = operator_metrics(window("splitter", first=2, last=4), interval_s=10.0, latency_s=None)
    length_s, task_s = 10.603, 7.745 + 7.168 + 6.757
    assert metrics.input_rate == pytest.approx(3 * 1584 / length_s, rel=1e-3)
    assert metrics.output_rate == pytest.approx(3 * 7920 / length_s, rel=1e-3)
    assert metrics.net_rate == pytest.approx((95_048 + 95_128 + 95_264) / length_s, rel=1e-3)
    assert metrics.busy == pytest.approx(task_s / (4 * length_s), rel=1e-3)
    assert metrics.idle == pytest.approx(1 - metrics.busy)
    assert metrics.true_input_rate == pytest.approx(4 * 3 * 1584 / task_s, rel=1e-3)
    assert metrics.true_input_rate == pytest.approx(metrics.input_rate / metrics.busy)
    assert metrics.true_output_rate == pytest.approx(metrics.output_rate / metrics.busy)
    assert metrics.batch_s == pytest.approx((3.232 + 3.759 + 3.606) / 3, rel=1e-3)
    assert (metrics.lag, metrics.lag_rate) == (8928, 14.4)
    assert metrics.arrival_rate is metrics.buffer_usage is metrics.state_bytes is None


def test_a_stateful_operator_counts_the_tasks_of_both_stages_and_its_state():
    metrics = operator_metrics(window("counter", first=2, last=2), interval_s=10.0, latency_s=None)
    assert metrics.true_input_rate == pytest.approx(4 * 7200 / (4.694 + 9.130), rel=1e-3)
    state = RECORDED["counter"]["progress"][1]["stateOperators"][0]
    assert metrics.state_bytes == state["memoryUsedBytes"] + state["customMetrics"]["rocksdbSstFileSize"]
    moved = state["customMetrics"]["rocksdbTotalBytesRead"] + state["customMetrics"]["rocksdbTotalBytesWritten"]
    assert metrics.io_rate == pytest.approx(moved / 3.940, rel=1e-3)


def test_of_a_paced_stateful_operator_only_the_tasks_that_read_are_its_slots():
    metrics = operator_metrics(window("counter", first=2, last=2, paced=True), interval_s=10.0, latency_s=None)
    assert metrics.true_input_rate == pytest.approx(4 * 7200 / 4.694, rel=1e-3)
    assert metrics.busy == pytest.approx(4.694 / (4 * 3.940), rel=1e-3)


def test_a_paced_batch_that_had_a_head_start_worked_longer_than_its_tasks_ran():
    plain = window("counter", first=2, last=2, paced=True)
    ahead = replace(plain, batches=[replace(batch, head_start_s=0.5) for batch in plain.batches])
    metrics = operator_metrics(ahead, interval_s=10.0, latency_s=None)
    assert metrics.true_input_rate == pytest.approx(4 * 7200 / (4.694 + 4 * 0.5), rel=1e-3)


def test_a_paced_join_has_one_slot_where_two_inputs_are_read():
    plain = window("splitter", first=2, last=2, paced=True)
    twice = replace(
        plain,
        batches=[replace(batch, scans=2) for batch in plain.batches],
        stages=[replace(stage, tasks=8, run_s=2 * stage.run_s) for stage in plain.stages],
    )
    seen, expected = (operator_metrics(each, interval_s=10.0, latency_s=None) for each in (twice, plain))
    assert seen.true_input_rate == pytest.approx(expected.true_input_rate)
    assert seen.busy == pytest.approx(expected.busy)


def test_while_workers_start_the_operator_is_busy_but_its_true_rate_unknown():
    metrics = operator_metrics(
        window("splitter", first=1, last=1, warm_ups=frozenset({1})), interval_s=10.0, latency_s=None
    )
    assert metrics.busy == pytest.approx(22.949 / (4 * 9.284), rel=1e-3)
    assert metrics.true_input_rate is None


def test_a_batch_whose_stages_are_not_known_yet_makes_shares_unknown_not_zero():
    metrics = operator_metrics(window("counter", first=2, last=3), interval_s=10.0, latency_s=None)
    assert metrics.busy is metrics.cpu is metrics.output_rate is metrics.true_input_rate is None
    assert metrics.input_rate > 0


def test_a_window_without_a_finished_batch_knows_its_lag_and_no_rates():
    running = replace(window("splitter", first=2, last=2), batches=())
    metrics = operator_metrics(running, interval_s=10.0, latency_s=3.0)
    assert metrics.input_rate is metrics.busy is metrics.true_input_rate is None
    assert (metrics.lag, metrics.latency_s) == (8928, 3.0)


def test_an_operator_with_nothing_to_do_is_idle():
    waiting = replace(window("splitter", first=2, last=2), batches=(), lag_records=0)
    metrics = operator_metrics(waiting, interval_s=10.0, latency_s=0.0)
    assert (metrics.input_rate, metrics.busy, metrics.idle) == (0, 0, 1)
    assert metrics.true_input_rate is None


def test_a_full_topic_downstream_is_backpressure_and_a_full_one_upstream_a_full_buffer():
    held = window("splitter", first=2, last=4, held_back_s=4.0, bound_records=10_000)
    metrics = operator_metrics(held, interval_s=10.0, latency_s=None)
    assert metrics.backpressure == 0.4
    assert metrics.buffer_usage == pytest.approx(0.8928)
    assert metrics.busy + metrics.backpressure + metrics.idle == pytest.approx(1)


def test_a_paced_slot_counts_as_computing_while_it_waits():
    plain = operator_metrics(window("splitter", first=2, last=4), interval_s=10.0, latency_s=None)
    paced = operator_metrics(window("splitter", first=2, last=4, paced=True), interval_s=10.0, latency_s=None)
    assert plain.cpu < 0.1
    assert paced.cpu == paced.busy


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(0, 4)], 40),
        ([(0, 4), (15, 8)], 4 * 5 + 8 * 5),
        ([(0, 4), (12, 1), (18, 6)], 4 * 2 + 1 * 6 + 6 * 2),
        ([(0, 4), (25, 8)], 40),
    ],
)
def test_slot_time_follows_rescales(changes, expected):
    assert instance_seconds(changes, 10, 20) == expected


def test_a_topic_read_twice_by_one_query_is_counted_once():
    source = {"startOffset": {"topic": "bids", "offset": 100}, "endOffset": {"topic": "bids", "offset": 150}}
    progress = {"sources": [{**source, "numInputRows": 100}]}
    assert records_per_topic(progress) == {"bids": 50}


def test_jobs_that_belong_to_no_batch_are_passed_over():
    assert read_stages({"description": "something else"}, []) == []
    assert read_stages({}, []) == []


def test_an_observation_has_every_operator_and_edge():
    windows = {name: window(name, first=2, last=2) for name in ("splitter", "counter")}
    seen = make_observation(
        windows,
        time_s=20.0,
        interval_s=10.0,
        edges=[("splitter", "counter")],
        latencies_s={"splitter": 2.5},
        latency_samples_s=[1.0, 2.0],
    )
    assert seen.operators["splitter"].latency_s == 2.5
    assert seen.operators["counter"].latency_s is None
    assert seen.edges == (("splitter", "counter"),)
    assert seen.latency_samples_s == (1.0, 2.0)
