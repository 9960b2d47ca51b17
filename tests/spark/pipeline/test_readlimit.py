"""The read limit finds the target duration, whatever a batch costs, and within three batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.spark.pipeline.read_limit import (
    FIRST_RECORDS_PER_SLOT,
    LARGEST_STEP_UP,
    LONGEST_TRIAL,
    ReadLimit,
)

START_UP_S = 2.5
"""Of the first batch of a run in these stories."""


@dataclass
class Operator:
    """A batch takes `overhead_s + records / rate`."""

    overhead_s: float
    rate: float

    def batch_s(self, records: int) -> float:
        return self.overhead_s + records / self.rate

    def steady_rate(self, target_s: float) -> float:
        """Records/s of batches that take as long as they should."""
        goal_s = max(target_s, 2 * self.overhead_s)
        return (goal_s - self.overhead_s) * self.rate / goal_s

    def reached(self, limit: ReadLimit) -> float:
        """Share of that rate in a batch of the limit's size."""
        return limit.records / self.batch_s(limit.records) / self.steady_rate(limit.target_s)


@dataclass
class WarmingOperator(Operator):
    """Its first records cost more, and so do its first batches: the JVM has yet to compile them."""

    slow_times: float = 2.0
    slow_records: float = 1.0
    noise: float = 0.05

    def batches(self, limit: ReadLimit, count: int, random: np.random.Generator) -> ReadLimit:
        done = 0.0
        for number in range(count):
            records = limit.records
            slow = np.exp(-done / self.slow_records) - np.exp(-(done + records) / self.slow_records)
            warming_s = self.overhead_s * np.exp(-number) + (self.slow_times - 1) * self.slow_records * slow / self.rate
            batch_s = (self.batch_s(records) + warming_s) * random.uniform(1 - self.noise, 1 + self.noise)
            if number == 0:
                limit = limit.after_first(batch_records=records, batch_s=batch_s + START_UP_S)
            else:
                limit = limit.after(batch_records=records, batch_s=batch_s)
            done += records
        return limit


def with_backlog(limit: ReadLimit, operator: Operator, batches: int, *, new_run: bool = False) -> ReadLimit:
    """The limit after so many batches of a full topic."""
    for number in range(batches):
        batch_s = operator.batch_s(limit.records)
        if new_run and number == 0:
            limit = limit.after_first(batch_records=limit.records, batch_s=batch_s + START_UP_S)
        else:
            limit = limit.after(batch_records=limit.records, batch_s=batch_s)
    return limit


operators = st.builds(Operator, overhead_s=st.floats(0.01, 3.0), rate=st.floats(500, 5e6))


@given(operator=operators, parallelism=st.integers(1, 24), target_s=st.floats(0.5, 5.0))
def test_batches_settle_near_the_target(operator, parallelism, target_s):
    limit = with_backlog(ReadLimit.first(target_s=target_s, parallelism=parallelism), operator, 300)
    duration_s = operator.batch_s(limit.records)
    assert target_s * 0.7 <= duration_s <= max(target_s, 2 * operator.overhead_s) * 1.3


@pytest.mark.parametrize("parallelism", [1, 2, 6])
@pytest.mark.parametrize("rate", [20_000, 100_000, 500_000, 1_400_000])
@pytest.mark.parametrize("overhead_s", [0.1, 0.3, 0.5])
def test_a_backlog_is_read_at_nine_tenths_of_full_speed_after_three_batches(overhead_s, rate, parallelism):
    operator = Operator(overhead_s, rate)
    limit = with_backlog(ReadLimit.first(target_s=2.0, parallelism=parallelism), operator, 3, new_run=True)
    assert operator.reached(limit) >= 0.9
    assert operator.batch_s(limit.records) <= 1.5 * limit.target_s


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("slow_times", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("rate", [100_000, 1_400_000, 7_000_000])
@pytest.mark.parametrize("overhead_s", [0.1, 0.3, 0.5])
def test_a_query_without_python_is_at_full_speed_after_three_batches_though_the_first_are_slow(
    overhead_s, rate, slow_times, seed
):
    operator = WarmingOperator(overhead_s, rate, slow_times=slow_times, slow_records=rate / 3)
    guess = ReadLimit.first(target_s=2.0, parallelism=2).native()
    limit = operator.batches(guess, 3, np.random.default_rng(seed))
    assert operator.reached(limit) >= 0.88
    assert operator.batch_s(limit.records) <= LONGEST_TRIAL * limit.target_s


def test_what_an_earlier_run_has_found_is_no_guess_for_a_query_without_python_to_raise():
    found = ReadLimit.first(target_s=2.0, parallelism=1, known_records=700)
    assert found.native() == found


@pytest.mark.parametrize("rate", [100_000, 1_400_000, 5_000_000])
@pytest.mark.parametrize("overhead_s", [0.1, 0.5])
def test_events_that_come_when_the_next_batch_has_begun_cost_a_batch_each_and_no_more(overhead_s, rate):
    operator = Operator(overhead_s, rate)
    limit = ReadLimit.first(target_s=2.0, parallelism=2)
    running = limit.records
    for number in range(7):
        done, running = running, limit.records
        batch_s = operator.batch_s(done)
        if number == 0:
            limit = limit.after_first(batch_records=done, batch_s=batch_s + START_UP_S)
        else:
            limit = limit.after(batch_records=done, batch_s=batch_s)
    assert operator.reached(limit) >= 0.9
    assert operator.batch_s(limit.records) <= 1.5 * limit.target_s


def test_a_restart_goes_on_with_the_limit_that_was_found():
    operator = Operator(0.4, 1_400_000)
    found = with_backlog(ReadLimit.first(target_s=2.0, parallelism=1), operator, 10)
    again = ReadLimit.first(target_s=2.0, parallelism=1, known_records=found.records)
    assert again.records == found.records
    for batches in (1, 2, 3, 4):
        assert operator.reached(with_backlog(again, operator, batches, new_run=True)) >= 0.9


@pytest.mark.parametrize("start_up_s", [0.0, 4.0])
def test_the_first_batch_of_a_run_moves_no_limit_that_was_found(start_up_s):
    operator = Operator(0.4, 1_400_000)
    found = with_backlog(ReadLimit.first(target_s=2.0, parallelism=1), operator, 10)
    batch_s = operator.batch_s(found.records) + start_up_s
    assert found.after_first(batch_records=found.records, batch_s=batch_s) == found


@given(operator=operators, parallelism=st.integers(1, 24))
def test_a_first_step_never_leads_to_a_batch_of_many_times_the_target(operator, parallelism):
    """Even where all of the first batch was work; one that was too long already is not repeated larger."""
    guess = ReadLimit.first(target_s=2.0, parallelism=parallelism)
    first_s = operator.batch_s(guess.records)
    second = guess.after_first(batch_records=guess.records, batch_s=first_s)
    assert operator.batch_s(second.records) <= max(LONGEST_TRIAL * 2.0, first_s) * 1.01


@pytest.mark.parametrize("parallelism", [1, 8])
def test_a_rescaled_operator_is_at_full_speed_after_three_batches(parallelism):
    limit = with_backlog(ReadLimit.first(target_s=2.0, parallelism=4), Operator(0.4, 400_000), 10)
    after = Operator(0.4, 100_000 * parallelism)
    assert after.reached(with_backlog(limit.rescaled(parallelism), after, 3)) >= 0.9


@given(st.integers(0, 2**32 - 1))
def test_ten_times_the_load_is_taken_up_within_three_batches(seed):
    """Small batches of an idle time show the overhead and must not leave a wrong cost per record behind."""
    random = np.random.default_rng(seed)
    operator = Operator(0.3, 600_000)
    limit = ReadLimit.first(target_s=2.0, parallelism=2)
    for _ in range(20):
        records = min(limit.records, int(random.uniform(5_000, 15_000)))
        limit = limit.after(batch_records=records, batch_s=operator.batch_s(records) * random.uniform(0.9, 1.1))
    assert limit.records >= FIRST_RECORDS_PER_SLOT
    assert operator.reached(with_backlog(limit, operator, 3)) >= 0.9


def test_one_slow_batch_is_made_up_for_by_the_next_two():
    operator = Operator(0.3, 500_000)
    limit = with_backlog(ReadLimit.first(target_s=2.0, parallelism=2), operator, 10)
    limit = limit.after(batch_records=limit.records, batch_s=20.0)
    assert operator.reached(with_backlog(limit, operator, 2)) >= 0.9


def test_batches_are_not_made_smaller_than_their_overhead_is_worth():
    operator = Operator(1.0, 10_000)
    limit = with_backlog(ReadLimit.first(target_s=0.4, parallelism=1), operator, 300)
    assert operator.batch_s(limit.records) == pytest.approx(2.0, rel=0.2)


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
def test_whatever_happens_a_batch_is_at_most_so_many_times_the_last_and_never_below_one_record_per_slot(
    batches, parallelism
):
    limit = ReadLimit.first(target_s=2.0, parallelism=parallelism)
    for records, duration_s in batches:
        moved = limit.after(batch_records=min(records, limit.records), batch_s=duration_s)
        assert moved.records >= parallelism
        assert moved.records <= LARGEST_STEP_UP * limit.records
        limit = moved


def test_a_batch_that_took_all_there_was_does_not_raise_the_limit():
    limit = ReadLimit.first(target_s=2.0, parallelism=1)
    assert limit.after(batch_records=10, batch_s=0.1).records == FIRST_RECORDS_PER_SLOT


def test_more_slots_read_more():
    limit = ReadLimit.first(target_s=2.0, parallelism=2)
    assert limit.rescaled(6).records == 3 * limit.records


@pytest.mark.parametrize(("batch_s", "records"), [(0.5, 8000), (2.0, 8000), (60.0, 4000)])
def test_a_paced_operator_stays_between_half_and_all_of_what_its_slots_do_in_the_target_time(batch_s, records):
    limit = replace(ReadLimit.first(target_s=2.0, parallelism=4, slot_rate=1000), records=8000)
    assert limit.after(batch_records=8000, batch_s=batch_s).records == records


def test_the_first_batch_of_paced_slots_is_short_and_the_next_full_one_is_not():
    first = ReadLimit.first(target_s=2.0, parallelism=4, slot_rate=1000).native()
    assert first.records == 2000
    assert first.after_first(batch_records=2000, batch_s=1.5).records == 8000
    # nothing had arrived when the run began
    assert first.after_first(batch_records=0, batch_s=0.6).after(batch_records=2000, batch_s=0.8).records >= 4000


def test_slots_on_a_curve_read_what_so_many_of_them_do():
    limit = replace(ReadLimit.first(target_s=2.0, parallelism=1, slot_rate=1000), records=2000)
    assert limit.rescaled(4, 700.0).records == 2 * 4 * 700
    assert limit.rescaled(4, 700.0).rescaled(1, 1000.0).records == limit.records
