"""Which task reads what: pieces of partitions, as many as there are tasks, with every offset in exactly one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sluice.spark.kafka.boundaries import whole_batches
from sluice.spark.kafka.source import cut_ranges, limit_evenly

ranges = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), min_size=1, max_size=5).map(
    lambda pairs: [(number, start, start + length) for number, (start, length) in enumerate(pairs)]
)


def test_two_partitions_for_three_tasks() -> None:
    assert cut_ranges([(0, 10, 16), (1, 0, 6)], [1, 1, 1]) == [[(0, 10, 14)], [(0, 14, 16), (1, 0, 2)], [(1, 2, 6)]]


@given(ranges, st.integers(1, 9))
def test_every_offset_is_read_by_one_task(whole: list[tuple[int, int, int]], parts: int) -> None:
    cut = cut_ranges(whole, [1.0] * parts)
    read = [(partition, offset) for piece in cut for partition, start, end in piece for offset in range(start, end)]
    assert sorted(read) == [(partition, offset) for partition, start, end in whole for offset in range(start, end)]
    sizes = [sum(end - start for _, start, end in piece) for piece in cut]
    assert len(cut) == parts
    assert max(sizes) - min(sizes) <= 1
    assert all(len({partition for partition, _, _ in piece}) == len(piece) for piece in cut)


@given(ranges, st.integers(0, 100))
def test_a_limit_is_reached_and_never_exceeded(whole: list[tuple[int, int, int]], most: int) -> None:
    start = {str(partition): low for partition, low, _ in whole}
    end = {str(partition): high for partition, _, high in whole}
    limited = limit_evenly(start, end, most)
    assert sum(limited.values()) - sum(start.values()) == min(most, sum(end.values()) - sum(start.values()))
    assert all(start[name] <= limited[name] <= end[name] for name in end)


def test_of_every_partition_the_same_share_is_read() -> None:
    assert limit_evenly({"0": 0, "1": 0}, {"0": 300, "1": 100}, 40) == {"0": 30, "1": 10}


def test_a_partition_that_was_added_is_read_from_its_beginning() -> None:
    assert limit_evenly({"0": 5}, {"0": 5, "1": 3}, 10) == {"0": 5, "1": 3}


ENDS = [{"0": 10, "1": 0}, {"0": 10, "1": 15}, {"0": 30, "1": 15}]


def test_whole_batches_are_read_as_many_as_the_limit_allows() -> None:
    start = {"0": 0, "1": 0}
    assert whole_batches(ENDS, start, 30) == ENDS[1]
    assert whole_batches(ENDS, start, 1_000) == ENDS[2]


def test_a_batch_above_the_limit_is_read_whole_all_the_same() -> None:
    assert whole_batches(ENDS, ENDS[0], 5) == ENDS[1]


def test_without_a_complete_batch_nothing_is_read() -> None:
    assert whole_batches(ENDS, ENDS[2], 100) == ENDS[2]
    assert whole_batches([], ENDS[0], 100) == ENDS[0]
