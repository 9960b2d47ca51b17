"""Who reads a topic and how far each one is: one small file per consumer, written by that consumer alone."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from sluice.errors import BadInputError
from sluice.spark.topic.files import load_checked, save_checked


class Consumers:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def register(self, consumer: str, offset: int) -> int:
        try:
            return self._load(self._path(consumer))
        except FileNotFoundError:
            save_checked(self._path(consumer), {"offset": offset})
            return offset

    def unregister(self, consumer: str) -> None:
        self._path(consumer).unlink(missing_ok=True)

    def offset(self, consumer: str) -> int:
        try:
            return self._load(self._path(consumer))
        except FileNotFoundError:
            known = ", ".join(sorted(self.offsets())) or "none"
            raise BadInputError(
                f"unknown consumer {consumer!r} of topic {self._folder.parent}; known: {known}"
            ) from None

    def offsets(self) -> dict[str, int]:
        found = {}
        for path in self._folder.glob("[!.]*.json"):
            try:
                found[unquote(path.stem)] = self._load(path)
            except FileNotFoundError:
                continue
        return found

    def acknowledge(self, consumer: str, offset: int) -> None:
        """Never goes back."""
        if offset > self.offset(consumer):
            save_checked(self._path(consumer), {"offset": offset})

    def _path(self, consumer: str) -> Path:
        return self._folder / f"{quote(consumer, safe='')}.json"

    @staticmethod
    def _load(path: Path) -> int:
        return int(load_checked(path)["offset"])
