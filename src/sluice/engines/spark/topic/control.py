"""How a running query is steered without stopping it: two small files, replaced atomically, read at every micro-batch.

Plain dataclasses: these modules are imported by every Python worker, where a heavier import would cost each slot time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ReaderControl:
    """Written by the runtime, read by the source before every micro-batch. A new file takes effect with the next batch.

    `bounded_topics` maps the folder of each topic the operator writes to the greatest number of records its slowest
    consumer may be behind; while one is exceeded the source hands out no new records.
    """

    partitions: int
    max_records_per_batch: int | None = None
    slot_rate: float | None = None
    bounded_topics: dict[str, int] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        raise NotImplementedError

    @classmethod
    def load(cls, path: Path) -> ReaderControl:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HeldBack:
    """Written by the source, read by the runtime: how long an operator waited for room in a bounded topic.

    Kept beside the control file and counted from the start of the query: a smaller value than before means a restart.
    """

    total_s: float = 0.0
    since_s: float | None = None
    """Unix time at which the present wait began; None when it is not waiting."""

    def seconds(self, now_s: float) -> float:
        """Held back up to now, the present wait included."""
        return self.total_s + (0.0 if self.since_s is None else max(0.0, now_s - self.since_s))

    @classmethod
    def beside(cls, control_path: Path) -> HeldBack:
        raise NotImplementedError
