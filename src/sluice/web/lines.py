"""The lines of a journal that may still grow: of a file, wherever it is written, or of this process's memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

BLOCK = 1_000_000
LONGEST_LINE = 16_000_000
"""A line longer than this is no record; what it holds is not kept."""
SHORT_BLOCK = 65_536
HEADER = b'{"kind":"run"'
OVERLONG = b"(a line of more than 16 MB)"


class JournalLines(Protocol):
    """Complete lines in order, each with a handle to read it again."""

    def fresh(self) -> Iterator[tuple[int, bytes]]:
        """Those since the last call."""
        ...

    def read(self, handle: int) -> bytes: ...

    @property
    def position(self) -> int:
        """Where the next fresh line begins, in handles."""
        ...

    @property
    def began_anew(self) -> bool:
        """Whether the lines of before are no longer those of this journal: it was rotated, or written again."""
        ...


class FileLines:
    """Follows a file. Handles are offsets; a torn last line waits for its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._inode = -1
        self._offset = 0
        self._rest = b""
        self._skips = False
        self.began_anew = False

    def fresh(self) -> Iterator[tuple[int, bytes]]:
        self.began_anew = self._reopen()
        while block := self._block(self._offset + len(self._rest), BLOCK):
            *lines, torn = (self._rest + block).split(b"\n")
            for line in lines:
                at, self._offset = self._offset, self._offset + len(line) + 1
                yield at, OVERLONG if self._skips else line
                self._skips = False
            self._rest = torn
            if len(torn) > LONGEST_LINE:
                self._offset, self._rest, self._skips = self._offset + len(torn), b"", True

    def read(self, handle: int) -> bytes:
        parts = []
        for start in range(handle, handle + LONGEST_LINE, SHORT_BLOCK):
            block = self._block(start, SHORT_BLOCK)
            part, newline, _ = block.partition(b"\n")
            parts.append(part)
            if newline or len(block) < SHORT_BLOCK:
                break
        return b"".join(parts)

    def bytes_at(self, start: int, count: int) -> bytes:
        """So many, or those that are there."""
        parts = []
        while count > 0 and (part := self._block(start, count)):
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return b"".join(parts)

    @property
    def size(self) -> int:
        """Of the file as it is now; 0 if there is none."""
        self._reopen()
        return os.fstat(self._file).st_size if self._file >= 0 else 0

    @property
    def position(self) -> int:
        return self._offset

    def _block(self, start: int, count: int) -> bytes:
        try:
            return os.pread(self._file, count, start) if self._file >= 0 else b""
        except OSError:
            return b""

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    def _reopen(self) -> bool:
        try:
            found = os.stat(self._path)
        except OSError:
            return False
        same = self._file >= 0 and found.st_ino == self._inode and found.st_size >= self._offset
        if same:
            return False
        was_open = self._file >= 0
        self.close()
        try:
            # a pipe must not keep a page waiting for who writes into it
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return False
        self._inode = os.fstat(self._file).st_ino
        self._offset, self._rest, self._skips = 0, b"", False
        return was_open


class MemoryLines:
    """Lines as they are appended by this process; handles count them. Headers and the newest are kept."""

    began_anew = False

    def __init__(self, most: int = 20_000) -> None:
        self._lines: dict[int, bytes] = {}
        self._count = 0
        self._taken = 0
        self._most = most

    def append(self, line: bytes) -> int:
        """Its handle."""
        self._lines[self._count] = line
        self._count += 1
        oldest = self._count - self._most - 1
        if not self._lines.get(oldest, HEADER).startswith(HEADER):
            del self._lines[oldest]
        return self._count - 1

    def fresh(self) -> Iterator[tuple[int, bytes]]:
        while self._taken < self._count:
            number, self._taken = self._taken, self._taken + 1
            if (line := self._lines.get(number)) is not None:
                yield number, line

    def read(self, handle: int) -> bytes:
        return self._lines.get(handle, b"")

    @property
    def position(self) -> int:
        return self._taken


def is_recent(path: Path, now_s: float, within_s: float) -> bool:
    try:
        return now_s - path.stat().st_mtime < within_s
    except OSError:
        return False
