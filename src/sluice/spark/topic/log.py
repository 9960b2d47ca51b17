"""The topic as its users see it. Any number of processes may hold one open; every call sees what others committed."""

from __future__ import annotations

import fcntl
import re
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa

from sluice.errors import BadInputError
from sluice.files import TEMPORARY_SUFFIX
from sluice.spark.topic.commits import Commit, CommitLog
from sluice.spark.topic.consumers import Consumers
from sluice.spark.topic.files import CorruptTopicError, load_checked, save_checked
from sluice.spark.topic.segments import Segment, Slice, read_slice, write_segment

COMMITS_BETWEEN_TRIMS = 16
RECORDS_PER_BATCH = 16_384
STAGED = re.compile(r"(?P<producer>[^@]*)@(?P<batch_id>\d+)@[0-9a-f]{32}")
"""Name of the folder of one attempt at a batch; anything else among the segments is not ours."""


class Topic:
    """An append-only log with dense record offsets. Safe to share between threads."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema
        self.segments_folder = path / "segments"
        self._log = CommitLog(path)
        self._consumers = Consumers(path / "consumers")
        self._thread_lock = threading.RLock()

    @classmethod
    def create(cls, path: Path, schema: pa.Schema) -> Topic:
        """Make the folder, or open it if it is there with the same schema; another schema is bad input."""
        path = Path(path)
        for folder in ("commits", "segments", "consumers"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        description = path / "topic.json"
        if not description.exists():
            save_checked(description, {"arrow_schema": schema.serialize().to_pybytes().hex()})
        topic = cls.open(path)
        if not topic.schema.equals(schema):
            raise BadInputError(
                f"topic {path} holds records of {one_line(topic.schema)}, not of {one_line(schema)}; use another folder"
            )
        return topic

    @classmethod
    def open(cls, path: Path) -> Topic:
        """Bad input if there is no topic."""
        path = Path(path)
        try:
            description = load_checked(path / "topic.json")
        except FileNotFoundError:
            raise BadInputError(f"no topic at {path}; expected a folder made by Topic.create") from None
        topic = cls(path, pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(description["arrow_schema"]))))
        with topic._exclusive():
            topic._log.check_gaps()
        return topic

    def append(self, table: pa.Table, *, producer: str, batch_id: int) -> Commit | None:
        """Append atomically; None if the producer has committed this (or a later) batch id before."""
        if not table.schema.equals(self.schema):
            raise BadInputError(f"topic {self.path} takes {one_line(self.schema)}, got {one_line(table.schema)}")
        last_batch_id = self.last_batch_id(producer)
        if last_batch_id is not None and batch_id <= last_batch_id:
            return None
        folder = self.stage(producer, batch_id)
        segments: tuple[Segment, ...] = ()
        if table.num_rows:
            segments = (write_segment(self.segments_folder, folder / "part-00000.parquet", table),)
        return self.commit(segments, folder=folder.name, producer=producer, batch_id=batch_id)

    def stage(self, producer: str, batch_id: int) -> Path:
        """A new folder for the Parquet files of one attempt at a batch, to be filled by any number of tasks."""
        folder = self.segments_folder / f"{quote(producer, safe='')}@{batch_id}@{uuid.uuid4().hex}"
        folder.mkdir()
        return folder

    def commit(self, segments: tuple[Segment, ...], *, folder: str, producer: str, batch_id: int) -> Commit | None:
        """Make the segments of one attempt visible, all at once; None if the batch was committed before."""
        with self._exclusive():
            self._log.refresh()
            if batch_id <= self._log.last_batch_ids.get(producer, -1):
                shutil.rmtree(self.segments_folder / folder, ignore_errors=True)
                return None
            commit = self._log.append(producer, batch_id, segments)
        if commit.seq % COMMITS_BETWEEN_TRIMS == COMMITS_BETWEEN_TRIMS - 1:
            self.trim()
        return commit

    def commits(self) -> list[Commit]:
        """The batches still kept, oldest first."""
        with self._fresh() as log:
            return list(log.commits)

    def last_batch_id(self, producer: str) -> int | None:
        """The newest committed batch of a producer: where it goes on after a crash."""
        with self._fresh() as log:
            return log.last_batch_ids.get(producer)

    def start_offset(self) -> int:
        """The oldest record still kept."""
        with self._fresh() as log:
            return log.start_offset

    def end_offset(self) -> int:
        """One past the newest committed record."""
        with self._fresh() as log:
            return log.end_offset

    def read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The records of a range, in order, checksums verified."""
        for piece in self.slices(start, end):
            yield from read_slice(piece, self.schema, RECORDS_PER_BATCH)

    def slices(self, start: int, end: int) -> list[Slice]:
        """Which parts of which files a range consists of."""
        with self._fresh() as log:
            return log.slices(self.segments_folder, start, end)

    def register(self, consumer: str) -> int:
        """Add a consumer at the oldest record kept, if it is new; its offset. What it has not read is kept."""
        with self._exclusive():
            self._log.refresh()
            return self._consumers.register(consumer, self._log.start_offset)

    def unregister(self, consumer: str) -> None:
        """Nothing is kept for it any longer."""
        self._consumers.unregister(consumer)

    @property
    def locator(self) -> str:
        return str(self.path)

    def position(self, consumer: str) -> int:
        return self._consumers.offset(consumer)

    def end_position(self) -> int:
        return self.end_offset()

    def waiting_s(self, consumer: str, unix_s: float) -> float:
        """By the time at which the record was committed."""
        arrived_s = self.arrival_time_s(self.position(consumer))
        return 0.0 if arrived_s is None else unix_s - arrived_s

    def records_between(self, start: int, end: int) -> int:
        return end - start

    def consumers(self) -> dict[str, int]:
        """Every registered consumer with the offset up to which it is done."""
        return self._consumers.offsets()

    def acknowledge(self, consumer: str, position: int) -> None:
        """The consumer will never ask again for a record before `position`. The Spark source does this by itself."""
        self._consumers.acknowledge(consumer, position)

    def lag_records(self, consumer: str) -> int:
        """Records committed but not yet finished by the consumer: exact, from the commit log alone."""
        offset = self._consumers.offset(consumer)
        return self.end_offset() - offset

    def slowest_lag_records(self) -> int:
        """The lag of the slowest consumer; 0 without consumers."""
        offsets = self._consumers.offsets().values()
        return self.end_offset() - min(offsets) if offsets else 0

    def arrival_time_s(self, offset: int) -> float | None:
        """Unix time at which the record was committed; None beyond the end or before the oldest kept."""
        with self._fresh() as log:
            commit = log.commit_at(offset)
            return None if commit is None else commit.arrival_time_s

    def trim(self) -> int:
        """Delete what every consumer has read, and what crashed writers left; the number of records dropped."""
        with self._exclusive():
            self._log.refresh()
            offsets = self._consumers.offsets().values()
            dropped = self._log.drop_before(min(offsets)) if offsets else []
            self._sweep()
            return sum(commit.records for commit in dropped)

    def _sweep(self) -> None:
        """Delete every attempt that no live commit names, unless it may still be a batch in the making."""
        for seq in self._log.seqs_on_disk():
            if seq < self._log.first_seq:
                self._log.path_of(seq).unlink(missing_ok=True)
        for leftover in (
            *self._log.commits_folder.glob(f".*{TEMPORARY_SUFFIX}"),
            *self.path.glob(f".*{TEMPORARY_SUFFIX}"),
        ):
            leftover.unlink(missing_ok=True)
        live = {segment.file.split("/")[0] for commit in self._log.commits for segment in commit.segments}
        for folder in self.segments_folder.iterdir():
            attempt = STAGED.fullmatch(folder.name)
            if attempt is None:
                continue
            decided = int(attempt["batch_id"]) <= self._log.last_batch_ids.get(unquote(attempt["producer"]), -1)
            if decided and folder.name not in live:
                shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _fresh(self) -> Iterator[CommitLog]:
        with self._thread_lock:
            self._log.refresh()
            yield self._log

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One writer at a time among all processes; the system frees the lock of a process that dies."""
        with self._thread_lock, (self.path / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def one_line(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema)


__all__ = ["Commit", "CorruptTopicError", "Topic"]
