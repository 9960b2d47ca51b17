"""The JVM of a session, started while Python still imports and checks what the session is for.

Neither needs the other, and starting a JVM takes as long as the rest of the imports. One whose settings turn out not to
be those of the session is ended, and the session starts its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sluice.spark.internals.jvm import end_jvm, start_jvm

_lock = threading.Lock()
_early: EarlyJvm | None = None


@dataclass(frozen=True)
class Launch:
    """What a JVM cannot change once it runs."""

    settings: Mapping[str, str]
    variables: Mapping[str, str]


class EarlyJvm:
    """Starts in a thread of its own. If that fails the session tries again and says why."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self._started = False
        self._thread = threading.Thread(target=self._start, name="early-jvm", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        self._thread.join()

    def end(self) -> None:
        self.wait()
        if self._started:
            end_jvm()

    def _start(self) -> None:
        with suppress(Exception), environment(self.launch.variables):
            self._started = start_jvm(self.launch.settings)


def begin(launch: Launch) -> None:
    """Start one, unless there is one. If no session takes it, it ends with this process."""
    global _early
    # imports that circle, as pyspark's do, must not run in two threads at once
    import pyspark.core.context  # noqa: F401

    with _lock:
        if _early is None:
            _early = EarlyJvm(launch)
            atexit.register(_end, _early)


def take(launch: Launch) -> None:
    """Leave the one that was begun to the session that starts next, if it was launched alike."""
    global _early
    with _lock:
        early, _early = _early, None
    if early is not None:
        atexit.unregister(_end)
        early.wait() if early.launch == launch else early.end()


def _end(early: EarlyJvm) -> None:
    early.end()


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """With these variables; as before afterwards."""
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = old
