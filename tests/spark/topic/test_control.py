from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import BadInputError
from sluice.spark.topic import HeldBack, ReaderControl
from sluice.spark.topic.source import split_by_weight


def test_a_control_file_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    control = ReaderControl(partitions=3, max_records_per_batch=10, slot_rate=2.5, bounded_topics={"/t": 7})
    control.save(tmp_path / "map.json")
    assert ReaderControl.load(tmp_path / "map.json") == control


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"partitions": 0}, "partitions must be at least 1, got 0"),
        ({"partitions": 1, "max_records_per_batch": 0}, "max_records_per_batch must be at least 1, got 0"),
        ({"partitions": 1, "slot_rate": 0.0}, "slot_rate must be more than 0 records/s, got 0.0"),
    ],
)
def test_a_wrong_wish_is_named(wrong, says: str) -> None:
    with pytest.raises(BadInputError, match=says):
        ReaderControl(**wrong)


def test_a_missing_or_broken_control_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    with pytest.raises(BadInputError, match=r"map\.json cannot be used"):
        ReaderControl.load(path)
    path.write_text('{"partitions": 2, "speed": 3}')
    with pytest.raises(BadInputError, match="speed"):
        ReaderControl.load(path)


def test_waits_add_up_from_when_they_were_seen_to_begin_and_end(tmp_path: Path) -> None:
    account = HeldBack()
    story = [(10.0, False), (11.0, True), (12.0, True), (14.0, False), (15.0, False), (20.0, True)]
    for now_s, held in story:
        account = account.noting(held, now_s)
    assert account.seconds(20.0) == 3.0
    assert account.seconds(21.5) == 4.5
    account.save_beside(tmp_path / "map.json")
    assert HeldBack.beside(tmp_path / "map.json") == account
    assert HeldBack.beside(tmp_path / "other.json") == HeldBack()


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.integers(1, 500))
def test_a_range_splits_into_exactly_the_wanted_parts_equal_to_one_record(start: int, total: int, parts: int) -> None:
    ranges = split_by_weight(start, start + total, [1.0] * parts)
    sizes = [high - low for low, high in ranges]
    assert len(ranges) == parts
    assert ranges[0][0] == start
    assert ranges[-1][1] == start + total
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(0, 10**9), st.integers(0, 10**6), st.lists(st.floats(0.01, 100), min_size=1, max_size=50))
def test_a_range_splits_by_weight_without_a_gap(start: int, total: int, weights: list[float]) -> None:
    ranges = split_by_weight(start, start + total, weights)
    assert (ranges[0][0], ranges[-1][1], len(ranges)) == (start, start + total, len(weights))
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))
    shares = [total * weight / sum(weights) for weight in weights]
    assert all(abs(high - low - share) < 2 for (low, high), share in zip(ranges, shares, strict=True))


def test_weights_are_one_per_partition() -> None:
    with pytest.raises(BadInputError, match="weights must be 2 numbers above 0"):
        ReaderControl(partitions=2, weights=[1.0])
    assert ReaderControl(partitions=2, weights=[1.0, 3.0]).weights == [1.0, 3.0]
