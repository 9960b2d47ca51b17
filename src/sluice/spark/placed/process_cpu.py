"""CPU time of executors with all they started: Spark's own metrics leave their Python processes out.

Only of executors on this machine; of others it stays unknown.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from sluice.processes import cpu_seconds

BACKEND = "CoarseGrainedExecutorBackend"


class ExecutorCpu:
    """Cores used by every executor of an application since it was last asked."""

    def __init__(self, application_id: str, proc: Path = Path("/proc")) -> None:
        self._application_id = application_id
        self._proc = proc
        self._seconds: dict[str, float] = {}

    def cores(self, interval_s: float) -> dict[str, float]:
        """Executor id -> cores; an executor is left out the first time, and where it is not of this machine."""
        now = {}
        for executor_id, process_id in self._processes().items():
            seconds = cpu_seconds(process_id, self._proc)
            if seconds is not None:
                now[executor_id] = seconds
        before, self._seconds = self._seconds, now
        return {
            executor_id: max(0.0, seconds - before[executor_id]) / interval_s
            for executor_id, seconds in now.items()
            if executor_id in before
        }

    def _processes(self) -> dict[str, int]:
        """A process that an executor is just starting has, for a moment, the executor's own command line."""
        found: dict[str, dict[int, int]] = {}
        for entry in self._proc.glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = entry.read_bytes().decode(errors="replace").split("\0")
                if any(word.endswith(BACKEND) for word in words) and self._application_id in words:
                    parent = int((entry.parent / "stat").read_text().rpartition(")")[2].split()[1])
                    found.setdefault(words[words.index("--executor-id") + 1], {})[int(entry.parent.name)] = parent
        return {
            executor_id: next(pid for pid, parent in parents.items() if parent not in parents)
            for executor_id, parents in found.items()
        }
