"""The commit log: what is in a topic, without opening a data file.

One small file per batch, numbered without gaps, and a snapshot of what trimmed batches amounted to. A process keeps a
`CommitLog` as its view and refreshes it; the cost of a refresh is that of the commits since the last one.
"""

from __future__ import annotations

import bisect
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sluice.spark.topic.files import CorruptTopicError, load_checked, save_checked
from sluice.spark.topic.segments import Segment, Slice

COMMIT_FILE = re.compile(r"(?P<seq>\d{20})\.json")


@dataclass(frozen=True)
class Commit:
    """One batch in the log: records `start_offset <= offset < end_offset`."""

    seq: int
    producer: str
    batch_id: int
    start_offset: int
    records: int
    arrival_time_s: float
    """Unix time of the commit: from here on the records wait for their consumers. Never earlier than the one before."""
    segments: tuple[Segment, ...]

    @property
    def end_offset(self) -> int:
        return self.start_offset + self.records


@dataclass(frozen=True)
class Snapshot:
    """Stands for all commits before `first_seq`."""

    first_seq: int = 0
    first_offset: int = 0
    last_arrival_time_s: float = 0.0
    last_batch_ids: dict[str, int] = field(default_factory=dict)


class CommitLog:
    """A view of the log in `folder`. Writing to it assumes the topic's lock is held and the view is fresh."""

    def __init__(self, folder: Path) -> None:
        self.commits_folder = folder / "commits"
        self._snapshot_path = folder / "snapshot.json"
        self._snapshot_stamp: tuple[int, int] | None = None
        self._snapshot = Snapshot()
        self.commits: list[Commit] = []
        self.last_batch_ids: dict[str, int] = {}

    @property
    def start_offset(self) -> int:
        return self._snapshot.first_offset

    @property
    def end_offset(self) -> int:
        return self.commits[-1].end_offset if self.commits else self._snapshot.first_offset

    @property
    def next_seq(self) -> int:
        return self.commits[-1].seq + 1 if self.commits else self._snapshot.first_seq

    @property
    def first_seq(self) -> int:
        return self._snapshot.first_seq

    def refresh(self) -> None:
        self._refresh_snapshot()
        while (commit := self._load(self.next_seq)) is not None:
            if commit.start_offset != self.end_offset:
                found, expected = commit.start_offset, self.end_offset
                raise CorruptTopicError(f"{self.path_of(commit.seq)}: begins at offset {found}, not at {expected}")
            self.commits.append(commit)
            self.last_batch_ids[commit.producer] = commit.batch_id

    def check_gaps(self) -> None:
        """A lost commit file would otherwise look like the end of the log. Assumes the topic's lock is held."""
        self.refresh()
        beyond = [seq for seq in self.seqs_on_disk() if seq > self.next_seq]
        if beyond:
            raise CorruptTopicError(
                f"{self.path_of(self.next_seq)}: commit is missing, later ones up to {max(beyond)} exist"
            )

    def append(self, producer: str, batch_id: int, segments: tuple[Segment, ...]) -> Commit:
        previous_s = self.commits[-1].arrival_time_s if self.commits else self._snapshot.last_arrival_time_s
        commit = Commit(
            seq=self.next_seq,
            producer=producer,
            batch_id=batch_id,
            start_offset=self.end_offset,
            records=sum(segment.records for segment in segments),
            arrival_time_s=max(time.time(), previous_s),
            segments=segments,
        )
        save_checked(self.path_of(commit.seq), asdict(commit))
        self.refresh()
        return commit

    def drop_before(self, offset: int) -> list[Commit]:
        """Forget the commits that end at or before `offset`. Their files may be deleted once this returns."""
        count = 0
        while count < len(self.commits) and self.commits[count].end_offset <= offset:
            count += 1
        dropped = self.commits[:count]
        if dropped:
            batch_ids = dict(self._snapshot.last_batch_ids)
            batch_ids.update((commit.producer, commit.batch_id) for commit in dropped)
            last = dropped[-1]
            save_checked(
                self._snapshot_path,
                asdict(Snapshot(last.seq + 1, last.end_offset, last.arrival_time_s, batch_ids)),
            )
            self.refresh()
        return dropped

    def commit_at(self, offset: int) -> Commit | None:
        """The commit that holds the record; None beyond the end or before the oldest kept."""
        index = bisect.bisect_right(self.commits, offset, key=lambda commit: commit.start_offset) - 1
        if index < 0 or offset >= self.commits[index].end_offset:
            return None
        return self.commits[index]

    def slices(self, segments_folder: Path, start: int, end: int) -> list[Slice]:
        """Where the records `start <= offset < end` are."""
        if start < self.start_offset or end > self.end_offset:
            kept = f"{self.start_offset} to {self.end_offset}"
            raise CorruptTopicError(f"{self.commits_folder}: records {start} to {end} requested, {kept} kept")
        found = []
        index = max(0, bisect.bisect_right(self.commits, start, key=lambda commit: commit.start_offset) - 1)
        for commit in self.commits[index:]:
            if commit.start_offset >= end:
                break
            first = commit.start_offset
            for segment in commit.segments:
                low, high = max(start, first), min(end, first + segment.records)
                if low < high:
                    found.append(Slice(str(segments_folder / segment.file), segment, low - first, high - low))
                first += segment.records
        return found

    def path_of(self, seq: int) -> Path:
        return self.commits_folder / f"{seq:020d}.json"

    def seqs_on_disk(self) -> list[int]:
        names = (COMMIT_FILE.fullmatch(path.name) for path in self.commits_folder.iterdir())
        return [int(name["seq"]) for name in names if name]

    def _load(self, seq: int) -> Commit | None:
        try:
            data = load_checked(self.path_of(seq))
        except FileNotFoundError:
            return None
        return Commit(**{**data, "segments": tuple(Segment(**segment) for segment in data["segments"])})

    def _refresh_snapshot(self) -> None:
        try:
            status = self._snapshot_path.stat()
        except FileNotFoundError:
            return
        stamp = (status.st_ino, status.st_mtime_ns)
        if stamp == self._snapshot_stamp:
            return
        self._snapshot = Snapshot(**load_checked(self._snapshot_path))
        self._snapshot_stamp = stamp
        self.commits = [commit for commit in self.commits if commit.seq >= self._snapshot.first_seq]
        for producer, batch_id in self._snapshot.last_batch_ids.items():
            self.last_batch_ids[producer] = max(batch_id, self.last_batch_ids.get(producer, -1))
