"""Reading ranges of offsets to their very end, from a broker that says what a script tells it to say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sluice.spark.kafka import reading
from sluice.spark.kafka.clients import clients
from sluice.spark.kafka.connection import Broker

kafka = pytest.importorskip("confluent_kafka")
BROKER = Broker(bootstrap="nowhere:1")


@dataclass
class Event:
    """A record, or the news that the partition ends at this offset."""

    at: int
    is_end: bool = False

    def error(self) -> Any:
        return kafka.KafkaError(kafka.KafkaError._PARTITION_EOF) if self.is_end else None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 * self.at


class Script:
    def __init__(self, *calls: list[Event]) -> None:
        self._calls = list(calls)

    def assign(self, partitions: list[Any]) -> None:
        pass

    def consume(self, count: int, timeout_s: float) -> list[Event]:
        return self._calls.pop(0)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    def play(*calls: list[Event]) -> None:
        @contextmanager
        def lent(*_: object, **__: object) -> Iterator[Script]:
            yield Script(*calls)

        monkeypatch.setattr(clients, "lent_consumer", lent)

    return play


def offsets(end: int) -> list[int]:
    return [message.at for messages in reading.read_ranges(BROKER, "topic", [(0, 0, end)]) for message in messages]


def test_a_partition_that_seems_to_end_inside_a_range_is_read_on(script: Any) -> None:
    script([Event(0), Event(1), Event(2, is_end=True)], [], [Event(2), Event(3)], [Event(4, is_end=True)])
    assert offsets(4) == [0, 1, 2, 3]


def test_a_range_that_ends_with_the_mark_of_a_transaction_is_complete_with_the_partition(script: Any) -> None:
    script([Event(0), Event(1), Event(3, is_end=True)])
    assert offsets(3) == [0, 1]


def test_a_range_that_ends_with_a_mark_inside_the_partition_is_complete_with_the_next_record(script: Any) -> None:
    script([Event(0), Event(1), Event(3)])
    assert offsets(3) == [0, 1]


def test_a_broker_that_never_gives_the_rest_is_an_error(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SILENCE_S", 0.0)
    script([Event(0), Event(1, is_end=True)], [])
    with pytest.raises(Exception, match="nowhere:1 gave no records for 0 s"):
        offsets(2)


def test_the_time_of_the_first_record_is_none_at_the_end_of_a_partition(script: Any) -> None:
    script([Event(7, is_end=True)])
    assert reading.first_timestamps_s(BROKER, "topic", {0: 7}) == {}
    script([Event(8), Event(9)])
    assert reading.first_timestamps_s(BROKER, "topic", {0: 7}) == {0: 8.0}
