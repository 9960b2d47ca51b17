"""The journals of a page: those in folders, found anew as they appear, and those of loops in this process."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from sluice.control.switches import Switchboard
from sluice.errors import BadInputError
from sluice.journal.file import JOURNAL_FILE, journal_path
from sluice.web.lines import FileLines, JournalLines
from sluice.web.shelf import Shelf

MOST_JOURNALS = 500
MOST_FOLDERS = 5_000
"""Looked into, so that a page over `/` answers."""
HEADER_BYTES = 256


class Library:
    """Journals by id; ids are made of paths here, so a page cannot ask for any other file."""

    def __init__(self, places: Sequence[Path] = ()) -> None:
        for place in places:
            if not place.is_file() and not place.is_dir():
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
        return sorted(found, key=lambda shelf: (shelf.switches is None, -shelf.written_s, shelf.title))


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
            is_named = name == JOURNAL_FILE or (".jsonl" in name and _begins_as_journal(path))
            if is_named and path != whole and path.is_file():
                yield path


def _begins_as_journal(path: Path) -> bool:
    try:
        # a pipe must not keep the list waiting
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return b'"run"' in (file.read(HEADER_BYTES) or b"")
    except OSError:
        return False


def _title(path: Path, place: Path) -> str:
    shown = path.parent if path.name == "journal.jsonl" else path
    try:
        short = shown.relative_to(place if place.is_dir() else place.parent)
    except ValueError:
        short = shown
    text = str(short) if str(short) != "." else shown.resolve().name
    # a path may hold bytes that are no text
    return text.encode("utf-8", "replace").decode()


def _id(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
