"""The loop's clock on Spark: real time."""

from __future__ import annotations

import threading
import time


class WallClock:
    """Real time since it was made or restarted. Sleeping ends early when `interrupted`, which any thread may set."""

    def __init__(self, interrupted: threading.Event | None = None) -> None:
        self.interrupted = interrupted or threading.Event()
        self._started_s = time.monotonic()

    def restart(self) -> None:
        self._started_s = time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() - self._started_s

    def sleep_s(self, duration_s: float) -> None:
        self.interrupted.wait(max(0.0, duration_s))
