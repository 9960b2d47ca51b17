"""A long journal at a glance: its header, lines spread over it, and its end.

Reading 100,000 cycles takes seconds; these lines take milliseconds and say what a page shows first. The rest is read
behind it (`sluice.web.shelf`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from sluice.web.lines import FileLines
from sluice.web.state import JournalState

LONG_BYTES = 8_000_000
"""A journal of more than this has a glimpse; one of less is read at once."""
SPREAD = 600
"""Lines of the past: as many as a chart has points."""
END_BYTES = 2_000_000
"""Of the end every line is read: some hundred cycles."""
SEARCHED_BYTES = 256_000_000
"""How far before that the last decision is looked for, if the end has none."""
BLOCK = 4_000_000
SAMPLE_BYTES = 65_536
DECIDED = b'"action":"apply"'


class _When(Struct):
    time_s: float
    kind: str


_WHEN = msgspec.json.Decoder(_When)


def glimpse(path: Path) -> JournalState | None:
    """What the chosen lines say; null for a journal that is short, of an old format, or not there."""
    lines = GlimpseLines(path)
    if not lines.is_long:
        return None
    state = JournalState(lines)
    state.refresh()
    # between the lines spread over the past there are others: those decisions are known with the rest
    state.decisions = [one for one in state.decisions if state.handles[one.row] >= lines.known_from]
    return state


class GlimpseLines:
    """Handles are offsets, as those of `FileLines`."""

    began_anew = False

    def __init__(self, path: Path) -> None:
        self._lines = FileLines(path)
        self._size = self._lines.size
        self._end = max(0, self._size - END_BYTES)
        self.known_from = 0
        """From here on every decision is known."""

    @property
    def is_long(self) -> bool:
        first = self._lines.bytes_at(0, 200)
        is_old = b'"run"' in first[:64] and b'"format":' not in first
        return self._size > LONG_BYTES and not is_old

    @property
    def position(self) -> int:
        return self._size

    def read(self, handle: int) -> bytes:
        return self._lines.read(handle)

    def fresh(self) -> Iterator[tuple[int, bytes]]:
        head = self._lines.read(0)
        yield 0, head
        ending = self._line_after(self._end)
        self.known_from = self._last_decision(ending)
        yield from self._spread(len(head) + 1, self.known_from)
        if self.known_from < ending:
            after = min(ending, self._line_after(self.known_from + SAMPLE_BYTES))
            yield from self._between(self.known_from, after)
            yield from self._spread(after, ending)
        yield from self._between(ending, self._size)

    def _spread(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """As many lines of a part of the file as it has of all its bytes."""
        count = SPREAD * (end - start) // max(1, self._size)
        before_s, at = 0.0, start
        for number in range(count):
            place = self._line_after(start + (end - start) * number // count)
            if not at < place < end:
                continue
            line = self._lines.read(place)
            try:
                found = _WHEN.decode(line)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if found.kind != "cycle":
                continue
            if found.time_s < before_s:
                yield from self._headers(at, place)
            before_s, at = found.time_s, place
            yield place, line

    def _headers(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """A run was resumed between two lines."""
        for handle, line in self._between(start, min(end, start + BLOCK)):
            if line[:64].startswith(b'{"kind":"run"'):
                yield handle, line

    def _last_decision(self, after: int) -> int:
        """Where its line begins; the end of the journal if it is in there, or is not found."""
        if DECIDED in self._lines.bytes_at(after, self._size - after):
            return after
        until = after
        while until > max(0, after - SEARCHED_BYTES):
            start = max(0, until - BLOCK)
            block = self._lines.bytes_at(start, until - start)
            found = block.rfind(DECIDED)
            if found >= 0:
                begins = block.rfind(b"\n", 0, found)
                if begins >= 0 or start == 0:
                    return start + begins + 1
            # a line may lie across two blocks
            until = start + min(SAMPLE_BYTES, BLOCK // 2) if start else 0
        return after

    def _between(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Complete lines that begin in a part of the file."""
        *lines, _ = self._lines.bytes_at(start, end - start).split(b"\n")
        for line in lines:
            yield start, line
            start += len(line) + 1

    def _line_after(self, at: int) -> int:
        """Where the next line begins; the end of the file if that is too far away."""
        found = self._lines.bytes_at(at, SAMPLE_BYTES).find(b"\n")
        return self._size if found < 0 else at + found + 1
