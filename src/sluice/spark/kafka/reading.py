"""Reading ranges of offsets: what tasks do, and what the driver asks of single records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sluice.errors import SluiceError
from sluice.spark.kafka.clients import clients, library
from sluice.spark.kafka.connection import Broker, is_passing

Range = tuple[int, int, int]
"""Partition, first offset, one past the last."""
OPEN_END = 2**62
"""As far as there is anything; any other end must be reached."""
MESSAGES_PER_CALL = 8_192
WAIT_S = 0.05
SILENCE_S = 60.0
"""A broker that gives nothing of what it has for so long is gone; the task fails and is tried again."""
QUEUED_KB = 8_192
"""Read ahead at most so much: a task reads a part of a partition, what lies behind it is of no use."""


def read_ranges(broker: Broker, topic: str, ranges: Sequence[Range]) -> Iterator[list[Any]]:
    """The committed messages of some ranges, each of another partition, in portions.

    A broker that has just taken over may not yet know how far its partition is committed: an end of the partition
    before the end of the range is waited out.
    """
    kafka = library()
    ends = {partition: end for partition, start, end in ranges if end > start}
    first = [kafka.TopicPartition(topic, partition, start) for partition, start, end in ranges if end > start]
    if not first:
        return
    with clients.lent_consumer(broker, auto_offset_reset="error", queued_max_messages_kbytes=QUEUED_KB) as consumer:
        consumer.assign(first)
        heard_s = time.monotonic()
        while ends:
            wanted = []
            for message in consumer.consume(MESSAGES_PER_CALL, WAIT_S):
                error, partition = message.error(), message.partition()
                if error is None:
                    end = ends.get(partition, -1)
                    if message.offset() < end:
                        wanted.append(message)
                    if message.offset() + 1 >= end:
                        ends.pop(partition, None)
                elif error.code() == kafka.KafkaError._PARTITION_EOF:
                    if ends.get(partition) == OPEN_END or message.offset() >= ends.get(partition, -1):
                        ends.pop(partition, None)
                elif not is_passing(error):
                    raise SluiceError(f"topic {topic!r}, partition {partition}: {error.str()}")
            if wanted:
                heard_s = time.monotonic()
                yield wanted
            elif time.monotonic() > heard_s + SILENCE_S:
                raise SluiceError(f"topic {topic!r}: {broker.bootstrap} gave no records for {SILENCE_S:g} s")


def count_records(broker: Broker, topic: str, ranges: Sequence[Range]) -> int:
    return sum(len(messages) for messages in read_ranges(broker, topic, ranges))


def first_timestamps_s(broker: Broker, topic: str, offsets: Mapping[int, int]) -> dict[int, float]:
    """Partition -> Unix time of the first record from this offset on; none for one without a record."""
    found: dict[int, float] = {}
    ranges = [(partition, offset, OPEN_END) for partition, offset in offsets.items()]
    for messages in read_ranges(broker, topic, ranges):
        for message in messages:
            found.setdefault(message.partition(), message.timestamp()[1] / 1000)
        if len(found) == len(offsets):
            break
    return found
