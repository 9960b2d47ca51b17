"""Where the batches of a topic end, so that whoever reads it next takes whole ones.

The tasks of a batch write side by side: within it, records are in no order, and a reader that stopped in the middle
would find records of the same batch behind its watermark. So every writer notes, when a batch is complete, where all
partitions stand; the readers of topics made here stop only there. The notes are in `PREFIX.batches`, by topic.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluice.errors import SluiceError
from sluice.spark.kafka.clients import READING, clients, library
from sluice.spark.kafka.commits import POLL_S, SETTLE_TIMEOUT_S, end_offsets
from sluice.spark.kafka.connection import TIMEOUT_S, Broker

if TYPE_CHECKING:
    from sluice.spark.kafka.log import KafkaPosition, KafkaTopic

BATCHES = "batches"
MESSAGES_PER_CALL = 1_000


def settled_position(log: KafkaTopic) -> KafkaPosition:
    """Where the topic stands, all that was written up to now being decided.

    The broker answers a commit before the partitions know of it.
    """
    partitions = log.all_partitions
    written = end_offsets(log.broker, partitions, committed=False)
    deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        decided = end_offsets(log.broker, partitions)
        if all(have >= want for have, want in zip(decided, written, strict=True)):
            return {str(partition): offset for partition, offset in enumerate(decided)}
        if time.monotonic() > deadline_s:
            raise SluiceError(f"a transaction on {log.name!r} stays open for more than {SETTLE_TIMEOUT_S:g} s")
        time.sleep(POLL_S)


class BoundaryWriter:
    def __init__(self, log: KafkaTopic) -> None:
        self._log = log
        self._producer = clients.add(library().Producer(log.broker.client(enable_idempotence=True, linger_ms=0)))

    def note(self) -> None:
        """A batch is complete."""
        value = json.dumps(settled_position(self._log))
        self._producer.produce(self._log.broker.name_of(BATCHES), key=self._log.name, value=value, partition=0)
        if self._producer.flush(TIMEOUT_S):
            raise SluiceError(f"the end of a batch of {self._log.name!r} was not noted within {TIMEOUT_S:g} s")

    def close(self) -> None:
        clients.close(self._producer)


class Boundaries:
    """The ends of batches that are not read yet, oldest first."""

    def __init__(self, broker: Broker, topic: str) -> None:
        kafka = library()
        self._topic = topic
        self._known: list[KafkaPosition] = []
        self._is_complete = False
        self._consumer = clients.add(kafka.Consumer(broker.client(**READING, auto_offset_reset="earliest")))
        self._consumer.assign([kafka.TopicPartition(broker.name_of(BATCHES), 0, 0)])

    def limited(self, start: KafkaPosition, most: int) -> KafkaPosition:
        """As `whole_batches` says, from what the writers have noted up to now."""
        self._refresh()
        self._known = [end for end in self._known if _count(start, end) > 0]
        return whole_batches(self._known, start, most)

    def close(self) -> None:
        clients.close(self._consumer)

    def _refresh(self) -> None:
        """The first time up to the end; then what has come since, as far as it is here already."""
        kafka: Any = library()
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            messages = self._consumer.consume(MESSAGES_PER_CALL, POLL_S)
            for message in messages:
                if message.error() is None:
                    if message.key().decode() == self._topic:
                        self._known.append(json.loads(message.value()))
                elif message.error().code() == kafka.KafkaError._PARTITION_EOF:
                    self._is_complete = True
            if self._is_complete and len(messages) < MESSAGES_PER_CALL:
                return
            if time.monotonic() > deadline_s:
                raise SluiceError(f"the ends of batches of {self._topic!r} were not read within {TIMEOUT_S:g} s")


def whole_batches(ends: Sequence[KafkaPosition], start: KafkaPosition, most: int) -> KafkaPosition:
    """The last end of a batch within so many offsets, or the next one; `start` if no batch has ended since."""
    later = [end for end in ends if _count(start, end) > 0]
    fitting = [end for end in later if _count(start, end) <= most]
    return (fitting[-1:] or later[:1] or [start])[0]


def _count(start: KafkaPosition, end: KafkaPosition) -> int:
    return sum(offset - start.get(partition, 0) for partition, offset in end.items())
