"""One journal of a page: what was read of it, and who may act on its loop."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice.control.switches import Switchboard
from sluice.web.glimpse import glimpse
from sluice.web.lines import JournalLines, is_recent
from sluice.web.state import JournalState
from sluice.web.text import NAME, clipped

END_BYTES = 1000
STILL_S = 30.0
"""A journal of another process that was silent for longer than this, and three intervals, is not live."""
BREATH_S = 0.0002
"""Between two parts of a long journal: the threads that answer the page come first."""


@dataclass
class Shelf:
    """A long journal is first shown by its glimpse; `read_on` has a thread read all of it, to take its place."""

    id: str
    title: str
    path: Path | None
    lines: JournalLines
    switches: Switchboard | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._whole = JournalState(self.lines)
        self._glimpse: JournalState | None = None
        self._reader: threading.Thread | None = None
        self._is_opened = False

    @property
    def state(self) -> JournalState:
        """As far as it was read."""
        return self._glimpse or self._whole

    @contextmanager
    def reading(self) -> Iterator[JournalState]:
        """What is there now, new lines read; nobody else reads meanwhile."""
        with self.lock:
            if not self._is_opened:
                self._glimpse = glimpse(self.path) if self.path else None
                self._is_opened = True
            if self._glimpse is None:
                self._whole.refresh()
            yield self.state

    @property
    def progress(self) -> float | None:
        """The share of a long journal that was read; null once it is all."""
        if self._glimpse is None or self.path is None:
            return None
        return min(0.99, self._whole.position / max(1.0, _size(self.path)))

    def read_on(self) -> None:
        """Read all of a long journal, behind the page."""
        with self.lock:
            if self._glimpse is None or self._reader is not None:
                return
            self._reader = threading.Thread(target=self._read_all, name="sluice-reader", daemon=True)
            self._reader.start()

    def refresh(self) -> JournalState:
        """All that is there now, however long that takes."""
        with self.reading():
            pass
        self.read_on()
        if self._reader is not None:
            self._reader.join()
        with self.reading() as state:
            return state

    def _read_all(self) -> None:
        try:
            self._whole.refresh(lambda: time.sleep(BREATH_S))
        finally:
            with self.lock:
                self._glimpse = None

    @property
    def is_live(self) -> bool:
        if self.state.end is not None:
            return False
        if self.switches is not None:
            return bool(self.switches.state["connected"]) or self.state.header is not None
        interval_s = self.state.header.interval_s if self.state.header else 0.0
        if self.path is None or (self.state.header is None and _has_end(self.path)):
            return False
        return is_recent(self.path, time.time(), max(STILL_S, 3 * interval_s))

    @property
    def changed_s(self) -> float:
        """When its file was last written; of one without a file, now."""
        return self.written_s if self.path else time.time()

    @property
    def written_s(self) -> float:
        try:
            return self.path.stat().st_mtime if self.path else 0.0
        except OSError:
            return 0.0

    def to_data(self) -> dict[str, Any]:
        header = self.state.header
        return {
            "id": self.id,
            "title": self.title,
            "policy": clipped(header.policy.label, NAME) if header else None,
            "pipeline": clipped(header.pipeline.label, NAME) if header else None,
            "live": self.is_live,
            "controls": self.switches is not None,
        }


def _has_end(path: Path) -> bool:
    """By its last line, so that a list of journals needs to read none."""
    try:
        with open(path, "rb") as file:
            file.seek(-min(END_BYTES, path.stat().st_size), os.SEEK_END)
            return b'"kind":"end"' in file.read()
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
