"""Where records go and where they are read from: a file of JSON lines, or memory.

A line is written by a single call to the operating system, so a crash can tear only the last one; opening the journal
again cuts a torn tail off before it appends.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from sluice.errors import BadInputError
from sluice.journal.legacy import upgrade
from sluice.journal.records import FORMAT, RECORD, AnyRecord, Cycle, End, RunHeader
from sluice.journal.results import CycleReport, RunLog, reports_of, runs_of
from sluice.model.base import first_problem

JOURNAL_FILE = "journal.jsonl"
BEGIN = b'{"kind":"run"'
"""Of every journal, spaces left out."""


class Journal(Protocol):
    """Takes records in order."""

    def append(self, record: AnyRecord) -> None: ...

    def close(self) -> None: ...


class MemoryJournal:
    """Keeps the records as they are; with a limit only the newest, and the header."""

    def __init__(self, limit: int | None = None) -> None:
        self._header: RunHeader | None = None
        self._records: deque[AnyRecord] = deque(maxlen=limit)
        self.on_append: Callable[[AnyRecord], None] | None = None
        """Called with every record, by whom appends it."""

    @property
    def records(self) -> list[AnyRecord]:
        return [*([self._header] if self._header else []), *self._records]

    def append(self, record: AnyRecord) -> None:
        if isinstance(record, RunHeader):
            self._header = record
            self._records.clear()
        else:
            self._records.append(record)
        if self.on_append is not None:
            self.on_append(record)

    def close(self) -> None:
        pass

    def reports(self) -> tuple[CycleReport, ...]:
        return reports_of(self._records)

    def end(self) -> End | None:
        return next((record for record in reversed(self._records) if isinstance(record, End)), None)


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """When a journal's file becomes `NAME.1` and another begins, and how many old ones are kept."""

    at_bytes: int = 64_000_000
    keep: int = 2

    def __post_init__(self) -> None:
        if self.at_bytes < 1 or self.keep < 1:
            raise ValueError(f"a rotation needs at_bytes and keep above 0, got {self.at_bytes} and {self.keep}")


class FileJournal:
    """One file, appended to; with `durable` every line is on the disk before `append` returns.

    With a rotation the file begins anew between two cycles, with the header of the run, so each file can be read alone.
    """

    def __init__(self, path: Path, *, durable: bool = True, rotation: Rotation | None = None) -> None:
        self.path = path
        self._durable = durable
        self._rotation = rotation
        self._header: RunHeader | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _open(path)
            if not _is_journal(self._file):
                self.close()
                raise BadInputError(f"journal {str(path)!r} has something else in it; choose another file")
            self._size = _intact_length(self._file)
            os.ftruncate(self._file, self._size)
        except OSError as error:
            raise BadInputError(f"cannot write journal {str(path)!r}: {error.strerror}") from error

    def append(self, record: AnyRecord) -> None:
        if isinstance(record, RunHeader):
            self._header = record
        elif isinstance(record, Cycle) and self._rotation and self._size >= self._rotation.at_bytes:
            self._rotate(self._rotation)
        self._write(record)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, record: AnyRecord) -> None:
        line = record.to_json().encode() + b"\n"
        written = os.write(self._file, line)
        while written < len(line):
            written += os.write(self._file, line[written:])
        if self._durable:
            os.fsync(self._file)
        self._size += len(line)

    def _rotate(self, rotation: Rotation) -> None:
        """Where files cannot be renamed the journal goes on in the one it has."""
        try:
            for number in range(rotation.keep, 0, -1):
                newer = rotated(self.path, number - 1) if number > 1 else self.path
                if newer.exists():
                    newer.replace(rotated(self.path, number))
            fresh = _open(self.path)
        except OSError:
            self._size = 0
            return
        self.close()
        self._file, self._size = fresh, 0
        if self._header is not None:
            self._write(self._header)


def rotated(path: Path, number: int) -> Path:
    """The file that was rotated away as the last but so many."""
    return path.with_name(f"{path.name}.{number}")


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)


def _is_journal(file: int) -> bool:
    """Whether it begins as a journal does, or with what a crash left of that; an empty file may become one."""
    begin = os.pread(file, 64, 0).replace(b" ", b"")[: len(BEGIN)]
    return BEGIN.startswith(begin)


def _intact_length(file: int) -> int:
    """Length up to and including the last newline."""
    end = os.fstat(file).st_size
    block = 4096
    position = end
    while position > 0:
        start = max(0, position - block)
        newline = os.pread(file, position - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        position = start
    return 0


def journal_path(where: Path) -> Path:
    """The journal itself, or the one in a folder."""
    return where / JOURNAL_FILE if where.is_dir() else where


def read_runs(where: Path) -> list[RunLog]:
    """Every run in a journal; at least one."""
    path = journal_path(where)
    return runs_of(read_journal(path), f"journal {str(path)!r}")


def read_journal(path: Path) -> Iterator[AnyRecord]:
    """Every complete record; a torn last line is passed over, a broken one before it is an error."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"cannot read journal {str(path)!r}: {error.strerror}") from error
    *lines, _torn = data.split(b"\n")
    old = 0
    for number, line in enumerate(lines, start=1):
        where = f"journal {str(path)!r}, line {number}"
        if old or b'"run"' in line[:64]:
            entry = _parse(line, where)
            if entry.get("kind") == "run":
                old = _format_of(entry, where)
            if old:
                yield from upgrade(entry, where)
                continue
        try:
            yield RECORD.validate_json(line)
        except ValidationError as error:
            raise BadInputError(f"{where}: {first_problem(error)}") from error


def _format_of(header: dict[str, Any], where: str) -> int:
    """The older format that follows this header; 0 for today's."""
    found = header.get("format", 1)
    if found == FORMAT:
        return 0
    if found != 1:
        raise BadInputError(f"{where}: format {found!r}; this version reads formats 1 to {FORMAT}")
    return 1


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise BadInputError(f"{where}: not JSON ({error})") from error
    if not isinstance(entry, dict):
        raise BadInputError(f"{where}: expected an object, got {entry!r}")
    return entry
