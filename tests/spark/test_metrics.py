"""From what Spark said in a run of WordCount to an observation, checked by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.spark.observe.events import Batch, BatchStage, read_batch, read_stages, records_per_topic
from sluice.spark.observe.metrics import make_observation, operator_metrics
from sluice.spark.observe.window import (
    SETTLE_S,
    Backlog,
    BatchLog,
    BatchSpan,
    QueryWindow,
    most_slots,
    slot_seconds,
    slots_since,
)

RECORDED = json.loads((Path(__file__).parent / "recorded" / "wordcount.json").read_text())


def window(operator: str, *, first: int, last: int, **facts) -> QueryWindow:
    """The window of these batches, from the start of the first to the end of the last."""
    found = RECORDED[operator]
    batches = [batch for batch in map(read_batch, found["progress"]) if first <= batch.batch_id <= last]
    stages = [stage for job in found["jobs"] for stage in read_stages(job["job"], job["stages"])]
    keys = {batch.key for batch in batches}
    settings = {
        "span": BatchSpan(
            began_s=batches[0].started_s,
            ended_s=batches[-1].ended_s,
            now_s=batches[-1].ended_s,
            batches=batches,
            stages=[stage for stage in stages if stage.key in keys],
        ),
        "parallelism": 4,
        "slots": 4,
        "slot_changes": [(0.0, 4)],
        "backlog": Backlog(lag_records=8928, lag_rate=14.4),
        "held_back": 0.0,
        "is_operator": True,
        "is_source": False,
        "trigger_s": 1.0,
    }
    return QueryWindow(**{**settings, **facts})


def with_span(found: QueryWindow, **facts) -> QueryWindow:
    return replace(found, span=replace(found.span, **facts))


def test_three_batches_of_the_splitter():
    metrics = operator_metrics(window("splitter", first=2, last=4))
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
    metrics = operator_metrics(window("counter", first=2, last=2))
    # 8 state tasks of 9.130 s in all ran within 1.371 s: more than four slots have
    assert metrics.true_input_rate == pytest.approx(4 * 7200 / (4 * (1.278 + 1.371)), rel=1e-3)
    assert metrics.busy == pytest.approx((1.278 + 1.371) / 3.940, rel=1e-3)
    state = RECORDED["counter"]["progress"][1]["stateOperators"][0]
    assert metrics.state_bytes == state["memoryUsedBytes"] + state["customMetrics"]["rocksdbSstFileSize"]
    moved = state["customMetrics"]["rocksdbTotalBytesRead"] + state["customMetrics"]["rocksdbTotalBytesWritten"]
    assert metrics.io_rate == pytest.approx(moved / 3.940, rel=1e-3)


def test_of_a_paced_stateful_operator_only_the_tasks_that_read_are_its_slots():
    metrics = operator_metrics(window("counter", first=2, last=2, paced=True))
    assert metrics.true_input_rate == pytest.approx(4 * 7200 / 4.694, rel=1e-3)
    assert metrics.busy == pytest.approx(4.694 / (4 * 3.940), rel=1e-3)


def test_a_paced_batch_that_had_a_head_start_worked_longer_than_its_tasks_ran():
    plain = window("counter", first=2, last=2, paced=True)
    ahead = with_span(plain, batches=[replace(batch, head_start_s=0.5) for batch in plain.span.batches])
    metrics = operator_metrics(ahead)
    assert metrics.true_input_rate == pytest.approx(4 * 7200 / (4.694 + 4 * 0.5), rel=1e-3)


def test_a_paced_join_has_one_slot_where_two_inputs_are_read():
    plain = window("splitter", first=2, last=2, paced=True)
    twice = with_span(
        plain,
        batches=[replace(batch, scans=2) for batch in plain.span.batches],
        stages=[replace(stage, tasks=8, run_s=2 * stage.run_s) for stage in plain.span.stages],
    )
    seen, expected = operator_metrics(twice), operator_metrics(plain)
    assert seen.true_input_rate == pytest.approx(expected.true_input_rate)
    assert seen.busy == pytest.approx(expected.busy)


def test_while_workers_start_nothing_is_known_of_the_operators_speed():
    found = window("splitter", first=1, last=1)
    metrics = operator_metrics(replace(found, warm_ups=frozenset({found.span.batches[0].key})))
    assert metrics.input_rate > 0
    assert metrics.cpu > 0
    assert metrics.busy is metrics.idle is metrics.true_input_rate is metrics.per_instance_rate() is None
    told = operator_metrics(found)
    assert told.busy == pytest.approx(22.949 / (4 * 9.284), rel=1e-3)
    assert told.per_instance_rate() is not None


def test_a_batch_whose_stages_are_not_known_makes_shares_unknown_not_zero():
    metrics = operator_metrics(window("counter", first=2, last=3))
    assert metrics.busy is metrics.cpu is metrics.output_rate is metrics.true_input_rate is None
    assert metrics.input_rate > 0


def test_a_window_without_a_finished_batch_knows_its_lag_and_no_rates():
    running = with_span(window("splitter", first=2, last=2), batches=(), stages=())
    metrics = operator_metrics(replace(running, backlog=replace(running.backlog, waited_s=3.0)))
    assert metrics.input_rate is metrics.busy is metrics.true_input_rate is None
    assert (metrics.lag, metrics.latency_s) == (8928, 3.0)


def test_an_operator_with_nothing_to_do_is_idle():
    waiting = with_span(window("splitter", first=2, last=2, is_idle=True), batches=(), stages=())
    metrics = operator_metrics(waiting)
    assert (metrics.input_rate, metrics.output_rate, metrics.busy, metrics.idle) == (0, 0, 0, 1)
    assert metrics.true_input_rate is metrics.arrival_rate is None


def test_a_full_topic_downstream_is_backpressure_and_a_full_one_upstream_a_full_buffer():
    backlog = Backlog(lag_records=8928, bound_records=10_000)
    metrics = operator_metrics(window("splitter", first=2, last=4, held_back=0.4, backlog=backlog))
    assert metrics.backpressure == 0.4
    assert metrics.buffer_usage == pytest.approx(0.8928)
    assert metrics.busy + metrics.backpressure + metrics.idle == pytest.approx(1)


def test_what_nobody_can_hold_back_has_no_backpressure_and_its_idle_share_is_unknown():
    metrics = operator_metrics(window("splitter", first=2, last=4, held_back=None))
    assert metrics.backpressure is metrics.idle is None
    assert metrics.busy is not None


def test_a_batch_that_lost_tasks_says_how_long_it_took_and_no_rates():
    found = window("splitter", first=2, last=4)
    lost = with_span(found, stages=[replace(stage, repeated=stage.batch_id == 3) for stage in found.span.stages])
    metrics = operator_metrics(lost)
    assert metrics.input_rate is metrics.busy is metrics.true_input_rate is None
    assert (metrics.lag, metrics.batch_s) == (8928, pytest.approx((3.232 + 3.759 + 3.606) / 3, rel=1e-3))


def test_a_paced_slot_counts_as_computing_while_it_waits():
    plain = operator_metrics(window("splitter", first=2, last=4))
    paced = operator_metrics(window("splitter", first=2, last=4, paced=True))
    assert plain.cpu < 0.1
    assert paced.cpu == paced.busy


def batch(number=0, *, started_s=0.0, ended_s=2.0, records=1000, **facts) -> Batch:
    return Batch(run_id="r", batch_id=number, started_s=started_s, ended_s=ended_s, records=records, **facts)


def stage(number=0, *, tasks, run_s, span_s, reads=False, **facts) -> BatchStage:
    figures = {"cpu_s": 0.0, "input_records": 1000 if reads else 0, "output_records": 0, "output_bytes": 0, **facts}
    return BatchStage(
        run_id="r", batch_id=number, tasks=tasks, run_s=run_s, started_s=span_s[0], ended_s=span_s[1], **figures
    )


def made_up(batches, stages, *, slots=1, length_s=2.0, **facts) -> QueryWindow:
    span = BatchSpan(began_s=0.0, ended_s=length_s, now_s=length_s, batches=batches, stages=stages)
    settings = {"slot_changes": [(0.0, slots)], "backlog": Backlog(lag_records=10**6), "is_operator": True, **facts}
    return QueryWindow(span=span, parallelism=slots, slots=slots, **settings)


def test_tasks_that_keep_state_side_by_side_take_the_time_of_one_slot():
    # one slot reads for 1 s, then eight state tasks of 0.5 s each run side by side
    stages = [stage(tasks=1, run_s=1.0, span_s=(0.1, 1.1), reads=True), stage(tasks=8, run_s=4.0, span_s=(1.2, 1.7))]
    metrics = operator_metrics(made_up([batch()], stages))
    assert metrics.true_input_rate == pytest.approx(1000 / 1.5)
    assert metrics.true_input_rate >= metrics.input_rate == 500
    assert metrics.busy == pytest.approx(0.75)


def test_stages_that_overlap_in_time_count_once():
    stages = [
        stage(tasks=2, run_s=2.0, span_s=(0.0, 1.0), reads=True),
        stage(tasks=2, run_s=2.0, span_s=(0.5, 1.5)),
        stage(tasks=2, run_s=0.2, span_s=(0.6, 0.7)),
    ]
    metrics = operator_metrics(made_up([batch()], stages, slots=2))
    assert metrics.true_input_rate == pytest.approx(2 * 1000 / (2 * 1.5))


def test_a_stage_without_times_may_have_run_as_long_as_its_batch():
    untimed = replace(stage(tasks=8, run_s=9.0, span_s=(0, 0)), started_s=None, ended_s=None)
    metrics = operator_metrics(made_up([batch()], [untimed]))
    assert (metrics.true_input_rate, metrics.busy) == (500, 1.0)


def test_a_batch_has_the_slots_it_read_with_whenever_the_change_was_noted():
    # two slots read all the time; that they are one now was noted before the batch began
    stages = [stage(tasks=2, run_s=4.0, span_s=(0.0, 2.0), reads=True)]
    metrics = operator_metrics(made_up([batch()], stages, slot_changes=[(-1.0, 1)]))
    assert metrics.true_input_rate == pytest.approx(1000 / 4)


def test_a_head_start_does_not_begin_before_the_slots_had_finished_the_batch_before():
    # paced at 500 records/s; the first batch is 0.5 s late, and the second gets that as its head start
    late, quick = batch(0, ended_s=2.5), batch(1, started_s=2.5, ended_s=4.0, head_start_s=0.5)
    stages = [
        stage(0, tasks=1, run_s=2.5, span_s=(0.0, 2.5), reads=True),
        stage(1, tasks=1, run_s=1.5, span_s=(2.5, 4.0), reads=True),
    ]
    metrics = operator_metrics(made_up([late, quick], stages, length_s=4.0, paced=True))
    assert metrics.true_input_rate == metrics.input_rate == pytest.approx(500)


@given(
    tasks=st.lists(st.tuples(st.integers(1, 16), st.floats(0, 2), st.floats(0, 2), st.floats(0.01, 1)), min_size=1),
    slots=st.integers(1, 8),
    warm_up=st.booleans(),
)
def test_a_true_rate_is_never_below_what_was_read(tasks, slots, warm_up):
    """Whatever the stages: `tasks` are (how many, begin, end, run time as a share of what fits into the span)."""
    stages = [stage(0, tasks=slots, run_s=0.1, span_s=(0.0, 2.0), reads=True)]
    stages += [
        stage(1, tasks=count, run_s=count * share * abs(high - low), span_s=(2 + min(low, high), 2 + max(low, high)))
        for count, low, high, share in tasks
    ]
    batches = [batch(0), batch(1, started_s=2.0, ended_s=4.0, records=300)]
    warm_ups = frozenset({batches[0].key} if warm_up else ())
    metrics = operator_metrics(made_up(batches, stages, slots=slots, length_s=4.0, warm_ups=warm_ups))
    if metrics.true_input_rate is not None:
        assert metrics.true_input_rate >= metrics.input_rate * (1 - 1e-9)


def test_output_is_what_the_sink_counts_unless_the_stages_write_a_topic():
    stages = [stage(tasks=1, run_s=1.0, span_s=(0, 1), reads=True, output_records=77)]
    counted = operator_metrics(made_up([batch(output_records=40)], stages, is_operator=False))
    assert (counted.output_rate, counted.true_output_rate, counted.net_rate) == (20, 40, None)
    uncounted = operator_metrics(made_up([batch()], stages, is_operator=False))
    assert uncounted.output_rate is uncounted.true_output_rate is None
    assert operator_metrics(made_up([batch()], stages)).output_rate == 38.5


def test_bytes_of_state_are_unknown_where_the_store_does_not_count_them():
    recorded = RECORDED["counter"]["progress"][1]
    (state,) = recorded["stateOperators"]
    in_memory = {**recorded, "stateOperators": [state, {"memoryUsedBytes": 5, "customMetrics": {}}]}
    assert read_batch(recorded).state_io_bytes > 0
    assert read_batch(in_memory).state_io_bytes is None
    assert read_batch({**recorded, "stateOperators": []}).state_io_bytes == 0


def test_a_trigger_that_found_nothing_to_do_is_no_batch():
    recorded = RECORDED["splitter"]["progress"][1]
    assert read_batch({**recorded, "durationMs": {"triggerExecution": 3, "latestOffset": 2}}) is None


def test_a_window_ends_where_the_running_batch_began_and_the_next_one_begins_there():
    log = BatchLog(began_s=0.0)
    log.batches += [batch(0), batch(1, started_s=2.0, ended_s=4.0)]
    log.add_stages([stage(number, tasks=1, run_s=1.0, span_s=(0, 1), reads=True) for number in (0, 1, 2)])
    span = log.close(now_s=5.0, until_s=4.2)
    assert (span.began_s, span.ended_s, len(span.batches), len(span.stages)) == (0.0, 4.2, 2, 2)
    log.batches.append(batch(2, started_s=4.2, ended_s=6.0))
    following = log.close(now_s=7.0, until_s=None)
    assert (following.began_s, following.ended_s, following.before.batch_id) == (4.2, 7.0, 1)
    assert [stage.batch_id for stage in following.stages] == [2]


def test_a_batch_whose_stages_have_not_arrived_yet_belongs_to_the_next_window():
    log = BatchLog(began_s=0.0)
    log.batches += [batch(0), batch(1, started_s=2.0, ended_s=4.0)]
    log.add_stages([stage(0, tasks=1, run_s=1.0, span_s=(0, 1), reads=True)])
    assert [one.batch_id for one in log.close(now_s=4.1, until_s=None).batches] == [0]
    assert log.began_s == 2.0
    # a batch without jobs never gets any
    assert [one.batch_id for one in log.close(now_s=4.1 + SETTLE_S, until_s=None).batches] == [1]


def test_the_stages_of_a_batch_that_failed_are_not_those_of_its_repetition():
    log = BatchLog(began_s=0.0)
    log.batches.append(batch())
    again = stage(tasks=1, run_s=1.0, span_s=(0, 1), reads=True)
    log.add_stages([replace(again, run_id="before"), again])
    assert log.close(now_s=2.0, until_s=None).stages == [again]


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
    assert slot_seconds(changes, 10, 20) == expected
    assert slot_seconds(slots_since(changes, 10), 10, 20) == expected


@pytest.mark.parametrize(("began_s", "ended_s", "most"), [(0, 5, 4), (5, 12, 4), (12, 17, 1), (13, 20, 6), (30, 40, 6)])
def test_the_most_slots_a_batch_had(began_s, ended_s, most):
    assert most_slots([(10, 4), (12, 1), (18, 6)], began_s, ended_s) == most


def test_a_topic_read_twice_by_one_query_is_counted_once():
    source = {"startOffset": {"topic": "bids", "offset": 100}, "endOffset": {"topic": "bids", "offset": 150}}
    progress = {"sources": [{**source, "numInputRows": 100}]}
    assert records_per_topic(progress) == {"bids": 50}


def test_jobs_that_belong_to_no_batch_are_passed_over():
    assert read_stages({"description": "something else"}, []) == []
    assert read_stages({}, []) == []


def test_every_batch_with_records_is_a_sample_of_latency():
    batches = [
        batch(0, started_s=0.0, ended_s=2.0),
        batch(1, started_s=2.0, ended_s=8.0),
        batch(2, started_s=8.0, ended_s=8.5, records=0),
        batch(3, started_s=10.0, ended_s=11.0, lag_records=400),
    ]
    seen = make_observation({"q": made_up(batches, [], length_s=12.0)}, time_s=12.0, interval_s=12.0)
    # half the time since the batch before began, the batch, and the lag at 3000 records in 12 s
    assert seen.latency_samples_s == pytest.approx((1 + 2, 1 + 6, 1 + 1 + 1.6))


def test_an_observation_has_every_operator_and_edge():
    windows = {
        "splitter": window("splitter", first=2, last=2, is_source=True, backlog=Backlog(waited_s=2.5)),
        "counter": window("counter", first=2, last=2),
    }
    seen = make_observation(
        windows,
        time_s=20.0,
        interval_s=10.0,
        edges=[("splitter", "counter")],
        latency_samples_s=[1.0, 2.0],
    )
    assert seen.operators["splitter"].latency_s == 2.5
    assert seen.operators["counter"].latency_s is None
    assert seen.edges == (("splitter", "counter"),)
    assert seen.latency_samples_s == (1.0, 2.0)
