"""A topic of a broker as a pipeline sees it. A position is `{partition: offset}`, one for every partition.

Consumers are consumer groups without members, `PREFIX.CONSUMER`: what they have finished is committed there, so the
tools of Kafka show the same lag. Only what is committed counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from sluice.errors import BadInputError, SluiceError
from sluice.spark.kafka.boundaries import BoundaryWriter
from sluice.spark.kafka.clients import clients, library
from sluice.spark.kafka.commits import Part, PartWriter, end_offsets, read_markers, start_offsets
from sluice.spark.kafka.connection import TIMEOUT_S, Broker, patiently
from sluice.spark.kafka.reading import count_records, first_timestamps_s
from sluice.spark.kafka.rows import json_values

if TYPE_CHECKING:
    import pyarrow as pa

NEW_TOPIC_S = 5.0
KafkaPosition = dict[str, int]
"""Keys are texts, as JSON has them."""


@dataclass
class KafkaTopic:
    """One topic; calls go to the broker and see what others committed."""

    broker: Broker
    name: str
    """As the broker knows it."""
    schema: pa.Schema = None
    is_theirs: bool = False
    """Made by others, whatever its name: nobody notes where batches end."""
    registered: list[str] = field(default_factory=list)
    _writers: dict[str, PartWriter] = field(default_factory=dict, repr=False)
    _seen_s: dict[tuple[str, int], float] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, locator: str) -> KafkaTopic:
        """From `locator`: the broker's URL and the topic's name after a `#`."""
        url, _, rest = locator.partition("#")
        name = urlsplit(rest).path
        said = parse_qs(urlsplit(rest).query)
        return cls(Broker.parse(url), name, is_theirs="theirs" in said, registered=said.get("consumer", []))

    @property
    def locator(self) -> str:
        said = "&".join([*(["theirs=1"] if self.is_theirs else []), *(f"consumer={name}" for name in self.registered)])
        return f"{self.broker.url}#{self.name}{'?' + said if said else ''}"

    @cached_property
    def partitions(self) -> int:
        # a topic that was just made is not known everywhere at once
        deadline_s = time.monotonic() + NEW_TOPIC_S
        while True:
            if count := patiently(partial(partition_count, self.broker, self.name)):
                return count
            if time.monotonic() > deadline_s:
                raise BadInputError(f"no topic {self.name!r} on {self.broker.bootstrap}")
            time.sleep(0.1)

    def append(self, table: pa.Table, *, producer: str, batch_id: int) -> int | None:
        last = self.last_batch_id(producer)
        if last is not None and batch_id <= last:
            return None
        writer = self._writer(producer)
        # all records of a batch go to one partition: each partition a transaction touches costs it an offset
        writer.write([{"value": value} for value in json_values(table)], batch_id % self.partitions)
        writer.commit(batch_id)
        if table.num_rows:
            self._last_batch_ids[producer] = batch_id
            self.note_batch()
        return batch_id

    def close(self) -> None:
        """End its writers; reading and asking go on to work."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        if (boundaries := self.__dict__.pop("_boundaries", None)) is not None:
            boundaries.close()

    @property
    def is_ours(self) -> bool:
        """Made here: all who write it note where their batches end."""
        own = self.broker.prefix is not None and self.name.startswith(f"{self.broker.prefix}.")
        return own and not self.is_theirs

    def note_batch(self) -> None:
        """What was written up to now is a complete batch."""
        if self.is_ours:
            self._boundaries.note()

    @cached_property
    def _boundaries(self) -> BoundaryWriter:
        return BoundaryWriter(self)

    def last_batch_id(self, producer: str) -> int | None:
        if producer not in self._last_batch_ids:
            self._writer(producer)
            key = Part(self.name, producer).key
            self._last_batch_ids[producer] = read_markers(self.broker).get(key, -1)
            # it may have died between its last batch and the note of it
            self.note_batch()
        last = self._last_batch_ids[producer]
        return None if last < 0 else last

    @cached_property
    def _last_batch_ids(self) -> dict[str, int]:
        return {}

    def _writer(self, producer: str) -> PartWriter:
        if producer not in self._writers:
            self._writers[producer] = PartWriter(self.broker, Part(self.name, producer))
        return self._writers[producer]

    def register(self, consumer: str) -> KafkaPosition:
        if consumer not in self.registered:
            self.registered.append(consumer)
        found = self._committed(consumer)
        if found is None:
            found = dict(enumerate(start_offsets(self.broker, self.all_partitions)))
            self._commit(consumer, found)
        return _texts(found)

    def unregister(self, consumer: str) -> None:
        if consumer in self.registered:
            self.registered.remove(consumer)

    def consumers(self) -> dict[str, int]:
        return {name: sum(self.position(name).values()) for name in self.registered}

    def position(self, consumer: str) -> KafkaPosition:
        found = self._committed(consumer)
        if found is None:
            raise BadInputError(f"unknown consumer {consumer!r} of topic {self.name!r}")
        return _texts(found)

    def end_position(self) -> KafkaPosition:
        return _texts(dict(enumerate(end_offsets(self.broker, self.all_partitions))))

    def acknowledge(self, consumer: str, position: KafkaPosition) -> None:
        """Never goes back."""
        before = self.position(consumer)
        if any(offset > before[partition] for partition, offset in position.items()):
            self._commit(consumer, {int(partition): offset for partition, offset in position.items()})

    def end_offset(self) -> int:
        return sum(self.end_position().values())

    def lag_records(self, consumer: str) -> int:
        return sum(self.lags(consumer).values())

    def lags(self, consumer: str) -> dict[str, int]:
        """Per partition, in offsets: records, and one per transaction."""
        done, end = self.position(consumer), self.end_position()
        return {partition: end[partition] - done[partition] for partition in end}

    def slowest_lag_records(self) -> int:
        return max((self.lag_records(consumer) for consumer in self.registered), default=0)

    def waiting_s(self, consumer: str, unix_s: float) -> float:
        """By Kafka's own timestamp of the record, which a topic of ours gets when the broker appends it."""
        done, end = self.position(consumer), self.end_position()
        behind = {(name, done[name]) for name in end if end[name] > done[name]}
        missing = behind - self._seen_s.keys()
        if missing:
            found = first_timestamps_s(self.broker, self.name, {int(name): offset for name, offset in missing})
            self._seen_s = {key: seen_s for key, seen_s in self._seen_s.items() if key in behind}
            self._seen_s.update({(name, offset): found.get(int(name), unix_s) for name, offset in missing})
        return max((unix_s - self._seen_s[key] for key in behind), default=0.0)

    def records_between(self, start: KafkaPosition, end: KafkaPosition) -> int:
        """Counted by reading: offsets also count the marks of transactions, and what was given up."""
        ranges = [(int(name), start[name], end[name]) for name in end if end[name] > start[name]]
        return count_records(self.broker, self.name, ranges) if ranges else 0

    @property
    def all_partitions(self) -> list[Any]:
        return [library().TopicPartition(self.name, partition) for partition in range(self.partitions)]

    def _group(self, consumer: str) -> str:
        return self.broker.name_of(consumer)

    def _committed(self, consumer: str) -> dict[int, int] | None:
        """Null if this group has never finished anything here."""

        def ask() -> list[Any]:
            with clients.lent_consumer(self.broker, group_id=self._group(consumer)) as client:
                return list(client.committed(self.all_partitions, TIMEOUT_S))

        found = patiently(ask)
        if all(part.offset < 0 for part in found):
            return None
        # a partition that was added since has nothing finished
        return {part.partition: max(0, part.offset) for part in found}

    def _commit(self, consumer: str, offsets: dict[int, int]) -> None:
        kafka = library()
        wanted = [kafka.TopicPartition(self.name, partition, offset) for partition, offset in offsets.items()]

        def ask() -> list[Any]:
            with clients.lent_consumer(self.broker, group_id=self._group(consumer)) as client:
                return list(client.commit(offsets=wanted, asynchronous=False))

        for part in patiently(ask):
            if part.error is not None:
                raise SluiceError(f"the offset of {self._group(consumer)!r} was not committed: {part.error}")


def partition_count(broker: Broker, topic: str) -> int:
    """0 if there is no such topic."""
    with clients.lent_consumer(broker) as client:
        found = client.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    return len(found.partitions) if found.error is None else 0


def _texts(offsets: dict[int, int]) -> KafkaPosition:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}
