"""The journals of a page: those in folders, found anew as they appear, and those of loops in this process."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from sluice.control.switches import Switchboard
from sluice.errors import BadInputError
from sluice.journal.file import journal_path
from sluice.web.lines import FileLines, JournalLines, is_recent
from sluice.web.state import JournalState

MOST_JOURNALS = 500
MOST_FOLDERS = 5_000
"""Looked into, so that a page over `/` answers."""
HEADER_BYTES = 256
END_BYTES = 1000
STILL_S = 30.0
"""A journal of another process that was silent for longer than this, and three intervals, is not live."""


@dataclass
class Shelf:
    """One journal: what was read of it, and the controls of its loop if that is in this process."""

    id: str
    title: str
    path: Path | None
    lines: JournalLines
    switches: Switchboard | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.state = JournalState(self.lines)

    @contextmanager
    def reading(self) -> Iterator[JournalState]:
        """What is there now, new lines read; nobody else reads meanwhile."""
        with self.lock:
            self.state.refresh()
            yield self.state

    def refresh(self) -> JournalState:
        with self.reading() as state:
            return state

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
        return _changed_s(self.path) if self.path else time.time()

    def to_data(self) -> dict[str, Any]:
        header = self.state.header
        return {
            "id": self.id,
            "title": self.title,
            "policy": header.policy.label if header else None,
            "pipeline": header.pipeline.label if header else None,
            "live": self.is_live,
            "controls": self.switches is not None,
        }


class Library:
    """Journals by id; ids are made of paths here, so a page cannot ask for any other file."""

    def __init__(self, places: Sequence[Path] = ()) -> None:
        for place in places:
            if not place.exists():
                raise BadInputError(f"no journal and no folder at {str(place)!r}")
        self._places = places
        self._shelves: dict[str, Shelf] = {}
        self._lock = threading.Lock()

    def add(
        self, title: str, lines: JournalLines, *, path: Path | None = None, switches: Switchboard | None = None
    ) -> Shelf:
        """A journal that this process writes."""
        shelf = Shelf(_id(str(path.resolve()) if path else f"live {title}"), title, path, lines, switches)
        with self._lock:
            self._shelves[shelf.id] = shelf
        return shelf

    def get(self, key: str) -> Shelf | None:
        with self._lock:
            return self._shelves.get(key)

    def shelves(self) -> list[Shelf]:
        """All there are now: live ones first, then the newest."""
        with self._lock:
            for place in self._places:
                for path in _journals(place):
                    key = _id(str(path.resolve()))
                    if key not in self._shelves and len(self._shelves) < MOST_JOURNALS:
                        self._shelves[key] = Shelf(key, _title(path, place), path, FileLines(path))
            found = list(self._shelves.values())
        return sorted(found, key=lambda shelf: (shelf.switches is None, -_changed_s(shelf.path), shelf.title))


def _journals(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    whole = journal_path(place)
    if whole.is_file():
        yield whole
    for folder, below, names in islice(os.walk(place), MOST_FOLDERS):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder) / name
            if path != whole and ".jsonl" in name and _begins_as_journal(path):
                yield path


def _begins_as_journal(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return b'"run"' in file.read(HEADER_BYTES)
    except OSError:
        return False


def _has_end(path: Path) -> bool:
    """By its last line, so that a list of journals needs to read none."""
    try:
        with open(path, "rb") as file:
            file.seek(-min(END_BYTES, path.stat().st_size), os.SEEK_END)
            return b'"kind":"end"' in file.read()
    except OSError:
        return False


def _title(path: Path, place: Path) -> str:
    shown = path.parent if path.name == "journal.jsonl" else path
    try:
        short = shown.relative_to(place if place.is_dir() else place.parent)
    except ValueError:
        short = shown
    return str(short) if str(short) != "." else shown.resolve().name


def _changed_s(path: Path | None) -> float:
    try:
        return path.stat().st_mtime if path else 0.0
    except OSError:
        return 0.0


def _id(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
