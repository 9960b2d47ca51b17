"""The read limit finds the target duration, whatever a batch costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.spark.pipeline.read_limit import FIRST_RECORDS_PER_SLOT, ReadLimit


def settled(limit: ReadLimit, *, overhead_s: float, rate: float, batches: int = 300) -> tuple[ReadLimit, float]:
    """The limit after so many batches of a full topic, and how long the last one took."""
    duration_s = 0.0
    for _ in range(batches):
        duration_s = overhead_s + limit.records / rate
        limit = limit.after(batch_records=limit.records, batch_s=duration_s)
    return limit, duration_s


@given(
    overhead_s=st.floats(0.01, 3.0),
    rate=st.floats(500, 5e6),
    parallelism=st.integers(1, 24),
    target_s=st.floats(0.5, 5.0),
)
def test_batches_settle_near_the_target(overhead_s, rate, parallelism, target_s):
    limit = ReadLimit.first(target_s=target_s, parallelism=parallelism)
    _, duration_s = settled(limit, overhead_s=overhead_s, rate=rate)
    assert target_s * 0.7 <= duration_s <= max(target_s, 2 * overhead_s) * 1.3


def test_batches_are_not_made_smaller_than_their_overhead_is_worth():
    limit = ReadLimit.first(target_s=0.4, parallelism=1)
    _, duration_s = settled(limit, overhead_s=1.0, rate=10_000)
    assert duration_s == pytest.approx(2.0, rel=0.2)


@given(st.integers(0, 2**32 - 1))
def test_a_few_records_in_a_slow_batch_do_not_hold_back_all_that_follow(seed):
    """A batch of one record, slow because the machine is busy, once made every later batch one record long."""
    random = np.random.default_rng(seed)
    limit = ReadLimit.first(target_s=0.4, parallelism=1)
    waiting = 1.0
    for _ in range(300):
        records = min(limit.records, max(1, int(waiting)))
        batch_s = random.uniform(0.5, 2.0) + records / 10_000
        waiting = max(0.0, waiting - records) + 900 * batch_s
        limit = limit.after(batch_records=records, batch_s=batch_s)
    assert waiting < 20_000


@given(
    batches=st.lists(st.tuples(st.integers(0, 10**7), st.floats(0, 1000)), max_size=30), parallelism=st.integers(1, 50)
)
def test_whatever_happens_the_limit_moves_at_most_twofold_and_never_below_one_record_per_slot(batches, parallelism):
    limit = ReadLimit.first(target_s=2.0, parallelism=parallelism)
    for records, duration_s in batches:
        moved = limit.after(batch_records=records, batch_s=duration_s)
        assert moved.records >= parallelism
        assert moved.records <= 2 * limit.records
        limit = moved


def test_a_batch_that_took_all_there_was_does_not_raise_the_limit():
    limit = ReadLimit.first(target_s=2.0, parallelism=1)
    assert limit.after(batch_records=10, batch_s=0.1).records == FIRST_RECORDS_PER_SLOT


def test_more_slots_read_more():
    limit = ReadLimit.first(target_s=2.0, parallelism=2)
    assert limit.rescaled(6).records == 3 * limit.records


@pytest.mark.parametrize(("batch_s", "records"), [(0.5, 8000), (2.0, 8000), (2.5, 6400), (60.0, 4000)])
def test_a_paced_operator_stays_between_half_and_all_of_what_its_slots_do_in_the_target_time(batch_s, records):
    limit = ReadLimit.first(target_s=2.0, parallelism=4, slot_rate=1000)
    assert limit.records == 8000
    assert limit.after(batch_records=8000, batch_s=batch_s).records == records


def test_slots_on_a_curve_read_what_so_many_of_them_do():
    limit = ReadLimit.first(target_s=2.0, parallelism=1, slot_rate=1000)
    assert limit.rescaled(4, 700.0).records == 2 * 4 * 700
    assert limit.rescaled(4, 700.0).rescaled(1, 1000.0).records == limit.records
