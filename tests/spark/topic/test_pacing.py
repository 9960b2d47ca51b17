"""Paced slots: as fast as an engine without batches would be, with a clock that only moves when advanced."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.spark.topic.pacing import MOST_HEAD_START_S, SlotClock, paced


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def now_s(self) -> float:
        return self.s

    def sleep_s(self, duration_s: float) -> None:
        self.s += duration_s


def read_for_s(records: int, slot_rate: float, head_start_s: float = 0.0) -> float:
    clock = Clock()
    batch = pa.record_batch({"id": range(records)})
    parts = list(paced(iter([batch]), slot_rate, head_start_s, clock.now_s, clock.sleep_s))
    assert sum(part.num_rows for part in parts) == records
    return clock.s - 100.0


@pytest.mark.parametrize(("head_start_s", "expected_s"), [(0.0, 2.0), (0.5, 1.5), (2.0, 0.0), (9.0, 0.0)])
def test_a_task_takes_what_its_records_take_less_its_head_start(head_start_s, expected_s):
    assert read_for_s(1000, 500.0, head_start_s) == pytest.approx(expected_s)


@pytest.mark.parametrize("work_s_per_portion", [0.0, 0.1])
def test_other_work_of_the_task_does_not_slow_its_slot_down(work_s_per_portion):
    clock = Clock()
    batches = iter([pa.record_batch({"id": range(300)}), pa.record_batch({"id": range(700)})])
    seen = []
    for batch in paced(batches, 500.0, now_s=clock.now_s, sleep_s=clock.sleep_s):
        seen += batch.column("id").to_pylist()
        last_s = clock.s
        clock.s += work_s_per_portion
    assert seen == [*range(300), *range(700)]
    assert last_s == pytest.approx(102.0)


def test_without_a_rate_nothing_waits():
    clock = Clock()
    list(paced(iter([pa.record_batch({"id": [1]})]), None, now_s=clock.now_s, sleep_s=clock.sleep_s))
    assert clock.s == 100.0


def test_a_slot_with_a_backlog_worked_while_spark_planned():
    slots = SlotClock(free_s=10.0)
    assert slots.head_start_s(10.0, arrived_s=0.0, records=200, rate=100.0) == 0.0
    # its two seconds of work are over at 12; the next batch is planned 0.7 s later
    assert slots.head_start_s(12.7, arrived_s=0.0, records=200, rate=100.0) == pytest.approx(0.7)
    assert slots.free_s == pytest.approx(14.0)


def test_a_slot_cannot_have_worked_on_a_record_before_it_arrived():
    slots = SlotClock(free_s=10.0)
    assert slots.head_start_s(20.0, arrived_s=19.8, records=1000, rate=100.0) == pytest.approx(0.2)


def test_a_few_records_are_done_before_the_batch_is_planned():
    assert SlotClock(free_s=10.0).head_start_s(11.0, arrived_s=10.0, records=20, rate=100.0) == pytest.approx(0.2)


def test_time_held_back_or_stalled_is_not_made_up_for():
    held = SlotClock(free_s=10.0)
    held.rest(30.0)
    assert held.head_start_s(30.5, arrived_s=0.0, records=1000, rate=100.0) == pytest.approx(0.5)
    assert SlotClock(free_s=0.0).head_start_s(99.0, arrived_s=0.0, records=9999, rate=1.0) == MOST_HEAD_START_S


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 3)), min_size=1, max_size=30))
def test_over_any_run_of_batches_the_slots_never_exceed_their_rate(batches):
    rate, now_s = 1000.0, 50.0
    slots, done, began_s = SlotClock(free_s=now_s), 0, now_s
    for records, overhead_s in batches:
        now_s += overhead_s
        head_start_s = slots.head_start_s(now_s, arrived_s=0.0, records=records, rate=rate)
        now_s += max(0.0, records / rate - head_start_s)
        done += records
        assert done / rate <= now_s - began_s + 1e-6
