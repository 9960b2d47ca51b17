"""The loop's clock on Spark: real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

SAMPLE_S = 1.0
"""How often there is something to look at while the loop sleeps."""


class WallClock:
    """Real time since `started_s`; sleeping does `while_waiting` every second, and ends early when `interrupted`."""

    def __init__(self, while_waiting: Callable[[], None], interrupted: threading.Event | None = None) -> None:
        self._while_waiting = while_waiting
        self.started_s = time.monotonic()
        self.interrupted = interrupted or threading.Event()
        """Set from a signal handler or another thread: sleeping ends at once."""

    def now_s(self) -> float:
        return time.monotonic() - self.started_s

    def sleep_s(self, duration_s: float) -> None:
        until_s = self.now_s() + duration_s
        while (left_s := until_s - self.now_s()) > 0 and not self.interrupted.wait(min(SAMPLE_S, left_s)):
            self._while_waiting()
