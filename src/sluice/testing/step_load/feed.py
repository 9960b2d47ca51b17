"""Files of numbered lines that appear at a given rate."""

from __future__ import annotations

import threading
import time
from pathlib import Path

FILES_PER_S = 4


class LineFeed:
    """Writes files of numbered lines at `records_per_s`, which may be changed; knows when each record appeared."""

    def __init__(self, folder: Path, records_per_s: float) -> None:
        folder.mkdir(parents=True)
        self.records_per_s = records_per_s
        self.written = 0
        self.appeared: dict[str, float] = {}
        """File -> Unix time it appeared."""
        self._folder = folder
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        due, last_s = 0.0, time.monotonic()
        while not self._ended.wait(1 / FILES_PER_S):
            now_s = time.monotonic()
            due, last_s = due + (now_s - last_s) * self.records_per_s, now_s
            count, due = int(due), due % 1
            if count:
                self._write(count)

    def _write(self, count: int) -> None:
        lines = "".join(f"{number:010d}\n" for number in range(self.written, self.written + count))
        hidden = self._folder / f".{self.written}"
        hidden.write_text(lines)
        self.written += count
        name = f"{self.written:010d}.txt"
        self.appeared[name] = time.time()
        hidden.rename(self._folder / name)
