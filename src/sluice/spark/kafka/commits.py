"""What is committed to a topic: markers, written in the same transaction as the records they tell of.

A marker says up to which batch one part of a producer (a task of a query, or a program) has written. Markers of all
topics of a pipeline are in one compacted topic, `PREFIX.commits`, by key `topic|producer|part`. Whoever writes as a
part first takes over its transactional id, which ends what an earlier holder has left open; then the marker holds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sluice.errors import SluiceError
from sluice.spark.kafka.clients import clients, library
from sluice.spark.kafka.connection import TIMEOUT_S, Broker, is_passing, patiently

COMMITS = "commits"
TRANSACTION_TIMEOUT_MS = 180_000
"""A batch may take this long from its first record to its commit. A crashed writer's records hold readers back until
its part is written again, or until this time is over."""
MESSAGES_PER_CALL = 10_000
SETTLE_TIMEOUT_S = TRANSACTION_TIMEOUT_MS / 1000 + TIMEOUT_S
POLL_S = 0.02
COMMITS_SETTINGS = {"cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.1"}


@dataclass(frozen=True)
class Part:
    """One writer of a topic: `part` numbers the tasks of a query's last stage; a program is its own part 0."""

    topic: str
    producer: str
    part: int = 0

    @property
    def key(self) -> str:
        return f"{self.topic}|{self.producer}|{self.part}"


class PartWriter:
    """Writes batches of one part exactly once. Opening one ends the transaction an earlier writer left open."""

    def __init__(self, broker: Broker, part: Part) -> None:
        self._broker = broker
        self._part = part
        settings = broker.client(
            transactional_id=f"{broker.prefix}|{part.key}",
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            linger_ms=5,
            batch_num_messages=MESSAGES_PER_CALL,
            queue_buffering_max_messages=1_000_000,
        )
        self._open = False
        self._producer = clients.add(library().Producer(settings))
        try:
            self._producer.init_transactions(TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """What was not committed is never seen: it stays open until the part is written again, or times out."""
        clients.close(self._producer)

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def last_batch_id(self, since: int = 0) -> int:
        """The newest batch that is committed, of those whose markers lie behind this offset; -1 for none."""
        return read_markers(self._broker, since).get(self._part.key, -1)

    def write(self, messages: list[dict[str, Any]], partition: int) -> None:
        """Add to the present transaction."""
        if not messages:
            return
        if not self._open:
            self._producer.begin_transaction()
            self._open = True
        for first in range(0, len(messages), MESSAGES_PER_CALL):
            left = messages[first : first + MESSAGES_PER_CALL]
            while left:
                self._producer.produce_batch(self._part.topic, left, partition=partition)
                left = [message for message in left if message.pop("_error", None) is not None]
                self._producer.poll(0.1 if left else 0)

    def commit(self, batch_id: int) -> None:
        """Make the records and their marker visible; nothing happens where no record was written."""
        if not self._open:
            return
        self._producer.produce(
            self._broker.name_of(COMMITS), key=self._part.key, value=json.dumps(batch_id), partition=0
        )
        self._producer.commit_transaction(TIMEOUT_S)
        self._open = False


def markers_end(broker: Broker) -> int:
    """The offset behind all markers, those of open transactions included."""
    return end_offsets(broker, [library().TopicPartition(broker.name_of(COMMITS), 0)], committed=False)[0]


def read_markers(broker: Broker, since: int = 0) -> dict[str, int]:
    """Key -> newest committed batch. What is being committed now is waited for, so that nothing is overlooked."""
    kafka = library()
    partition = kafka.TopicPartition(broker.name_of(COMMITS), 0)
    high = markers_end(broker)
    deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
    while end_offsets(broker, [partition])[0] < high:
        if time.monotonic() > deadline_s:
            raise SluiceError(f"a transaction on {partition.topic!r} stays open for more than {SETTLE_TIMEOUT_S:g} s")
        time.sleep(POLL_S)
    found: dict[str, int] = {}
    with clients.lent_consumer(broker, auto_offset_reset="earliest") as consumer:
        consumer.assign([kafka.TopicPartition(partition.topic, 0, since)])
        while True:
            for message in consumer.consume(1_000, 0.1):
                if message.error() is None:
                    key = message.key().decode()
                    found[key] = max(found.get(key, -1), int(message.value()))
                elif message.error().code() == kafka.KafkaError._PARTITION_EOF:
                    return found
                elif not is_passing(message.error()):
                    raise SluiceError(f"markers of {partition.topic!r} cannot be read: {message.error()}")
            if time.monotonic() > deadline_s:
                raise SluiceError(f"markers of {partition.topic!r} were not read within {SETTLE_TIMEOUT_S:g} s")


def end_offsets(broker: Broker, partitions: Iterable[Any], *, committed: bool = True) -> list[int]:
    """One past the newest record of each partition: of those that are committed, or of all."""
    return _listed(broker, partitions, library().OFFSET_END, "read_committed" if committed else "read_uncommitted")


def start_offsets(broker: Broker, partitions: Iterable[Any]) -> list[int]:
    return _listed(broker, partitions, library().OFFSET_BEGINNING, "read_committed")


def _listed(broker: Broker, partitions: Iterable[Any], which: int, level: str) -> list[int]:
    kafka = library()
    wanted = [kafka.TopicPartition(one.topic, one.partition, which) for one in partitions]

    def ask() -> list[int]:
        with clients.lent_consumer(broker, isolation_level=level) as consumer:
            found = consumer.offsets_for_times(wanted, TIMEOUT_S)
        for one in found:
            if one.error is not None:
                raise kafka.KafkaException(one.error)
        return [int(one.offset) for one in found]

    return patiently(ask)
