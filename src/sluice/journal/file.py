"""The append-only record of a run: JSON lines, the only thing reports and dashboards read.

The first line says what runs (`kind: run`), then one line per cycle (`kind: cycle`), at the end one with the
counted records (`kind: end`). A line is written by a single call to the operating system, so a crash can tear
only the last one; opening the journal again cuts a torn tail off before it appends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from sluice.errors import BadInputError

Entry = Mapping[str, Any]


class Journal(Protocol):
    """Where cycles are recorded."""

    def append(self, entry: Entry) -> None: ...

    def close(self) -> None: ...


def encode(entry: Entry) -> bytes:
    return json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"


class MemoryJournal:
    """Keeps the entries as they are: for simulations whose journal nobody reads from disk."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def append(self, entry: Entry) -> None:
        self.entries.append(entry)

    def close(self) -> None:
        pass


class FileJournal:
    """One file; with `durable` every line is on the disk before `append` returns."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._durable = durable
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, _intact_length(self._file))

    def append(self, entry: Entry) -> None:
        line = encode(entry)
        written = os.write(self._file, line)
        while written < len(line):
            written += os.write(self._file, line[written:])
        if self._durable:
            os.fsync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


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


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Every complete entry; a torn last line is passed over, a broken one before it is an error."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"cannot read journal {str(path)!r}: {error.strerror}") from error
    *lines, _torn = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise BadInputError(f"journal {str(path)!r}, line {number}: not JSON ({error})") from error
        if not isinstance(entry, dict):
            raise BadInputError(f"journal {str(path)!r}, line {number}: expected an object, got {entry!r}")
        yield entry
