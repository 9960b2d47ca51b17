"""Numbered lines that appear at a given rate, in files or in a topic of a broker."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path

WRITES_PER_S = 4


class SteppedFeed(ABC):
    """Writes at `records_per_s`, which may be changed."""

    def __init__(self, records_per_s: float) -> None:
        self.records_per_s = records_per_s
        self.written = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        due, last_s = 0.0, time.monotonic()
        while not self._ended.wait(1 / WRITES_PER_S):
            now_s = time.monotonic()
            due, last_s = due + (now_s - last_s) * self.records_per_s, now_s
            count, due = int(due), due % 1
            if count:
                self._write(range(self.written, self.written + count))

    @abstractmethod
    def _write(self, numbers: range) -> None:
        """Write these lines, counting them in `written`."""


class LineFeed(SteppedFeed):
    """Into files of a folder; knows when each record appeared."""

    def __init__(self, folder: Path, records_per_s: float) -> None:
        super().__init__(records_per_s)
        folder.mkdir(parents=True)
        self.appeared: dict[str, float] = {}
        """File -> Unix time it appeared."""
        self._folder = folder

    def _write(self, numbers: range) -> None:
        hidden = self._folder / f".{numbers.start}"
        hidden.write_text("".join(f"{number:010d}\n" for number in numbers))
        self.written = numbers.stop
        name = f"{self.written:010d}.txt"
        self.appeared[name] = time.time()
        hidden.rename(self._folder / name)


class TopicFeed(SteppedFeed):
    """Into a topic of a broker, spread over its partitions."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, records_per_s: float) -> None:
        from confluent_kafka import Producer

        super().__init__(records_per_s)
        self._topic, self._partitions = topic, partitions
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})

    def stop(self) -> None:
        super().stop()
        self._producer.close()

    def _write(self, numbers: range) -> None:
        for number in numbers:
            self._producer.produce(self._topic, f"{number:010d}", partition=number % self._partitions)
        self.written = numbers.stop
        self._producer.poll(0)
