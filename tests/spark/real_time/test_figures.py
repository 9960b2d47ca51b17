"""How results in real-time mode are compared with what was sent: each by itself, not only their sum."""

from __future__ import annotations

from typing import Any

from sluice.testing.real_time import KEYS, compare_conversions, compare_counts

SENT_US = [1_000_000 * second for second in range(12)]
"""Two windows: ten records and two, each of another key."""


def converted(number: int) -> dict[str, Any]:
    return {"id": number, "sent_us": SENT_US[number], "price": 0.908}


def count(start_s: int, key: int, records: int) -> dict[str, Any]:
    return {"start": f"1970-01-01T00:00:{start_s:02d}.000000Z", "key": key, "records": records}


COUNTS = [count(0 if key < 10 else 10, key, 1) for key in range(12)]


def test_conversions() -> None:
    everything = [converted(number) for number in range(12)]
    assert compare_conversions(SENT_US, everything) == (0, 0, 12)
    assert compare_conversions(SENT_US, everything[1:]) == (1, 0, 11)
    assert compare_conversions(SENT_US, [*everything, everything[3]]) == (0, 1, 12)


def test_counts() -> None:
    assert compare_counts(SENT_US, COUNTS) == (0, 0, 12)
    assert compare_counts(SENT_US, COUNTS[1:]) == (1, 0, 11)


def test_an_update_that_comes_again_is_twice_although_the_counts_are_right() -> None:
    assert compare_counts(SENT_US, [*COUNTS, COUNTS[0]]) == (0, 1, 12)


def test_a_record_in_the_wrong_window_is_lost_in_one_and_too_many_in_the_other() -> None:
    moved = [*COUNTS[1:], count(10, 0, 1)]
    assert compare_counts(SENT_US, moved) == (1, 1, 12)


def test_counts_that_begin_anew_are_lost_and_twice() -> None:
    sent_us = [0, *[5] * (KEYS - 1), 7]
    others = [count(0, key, 1) for key in range(1, KEYS)]
    assert compare_counts(sent_us, [*others, count(0, 0, 1), count(0, 0, 2)]) == (0, 0, KEYS)
    assert compare_counts(sent_us, [*others, count(0, 0, 1), count(0, 0, 1)]) == (1, 1, KEYS)
