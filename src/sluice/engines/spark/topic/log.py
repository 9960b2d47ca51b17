"""The topic as its users see it. Any number of processes may hold one open; every call sees what others committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sluice.errors import SluiceError


class CorruptTopicError(SluiceError):
    """A file of the topic is torn, altered or gone; the message names it. Its content is never handed out."""


@dataclass(frozen=True)
class Commit:
    """One batch in the log: records `start_offset <= offset < end_offset`."""

    seq: int
    producer: str
    batch_id: int
    start_offset: int
    records: int
    arrival_time_s: float
    """Unix time of the commit: from here on the records wait for their consumers."""

    @property
    def end_offset(self) -> int:
        return self.start_offset + self.records


class Topic:
    """An append-only log with dense record offsets."""

    path: Path
    schema: pa.Schema

    @classmethod
    def create(cls, path: Path, schema: pa.Schema) -> Topic:
        """Make the folder, or open it if it is there with the same schema; another schema is bad input."""
        raise NotImplementedError

    @classmethod
    def open(cls, path: Path) -> Topic:
        """Bad input if there is no topic."""
        raise NotImplementedError

    def append(self, table: pa.Table, *, producer: str, batch_id: int) -> Commit | None:
        """Append atomically; None if the producer has committed this (or a later) batch id before."""
        raise NotImplementedError

    def last_batch_id(self, producer: str) -> int | None:
        """The newest committed batch of a producer: where it goes on after a crash."""
        raise NotImplementedError

    def start_offset(self) -> int:
        """The oldest record still kept."""
        raise NotImplementedError

    def end_offset(self) -> int:
        """One past the newest committed record."""
        raise NotImplementedError

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The records of a range, in order, checksums verified."""
        raise NotImplementedError

    def register(self, consumer: str) -> int:
        """Add a consumer at the oldest record kept, if it is new; its offset. What it has not read is kept."""
        raise NotImplementedError

    def unregister(self, consumer: str) -> None:
        """Nothing is kept for it any longer."""
        raise NotImplementedError

    def consumers(self) -> dict[str, int]:
        """Every registered consumer with the offset up to which it is done."""
        raise NotImplementedError

    def acknowledge(self, consumer: str, offset: int) -> None:
        """The consumer will never ask again for a record before `offset`. The Spark source does this by itself."""
        raise NotImplementedError

    def lag_records(self, consumer: str) -> int:
        """Records committed but not yet finished by the consumer: exact, from the commit log alone."""
        raise NotImplementedError

    def slowest_lag_records(self) -> int:
        """The lag of the slowest consumer; 0 without consumers."""
        raise NotImplementedError

    def arrival_time_s(self, offset: int) -> float | None:
        """Unix time at which the record was committed; None beyond the end or before the oldest kept."""
        raise NotImplementedError

    def trim(self) -> int:
        """Delete what every consumer has read, and what crashed writers left; the number of records dropped."""
        raise NotImplementedError
