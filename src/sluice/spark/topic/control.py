"""How a running query is steered without stopping it: two small files, replaced atomically, read at every micro-batch.

Plain dataclasses: these modules are imported by every Python worker, where a heavier import would cost each slot time.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sluice.errors import BadInputError
from sluice.files import replace_file


@dataclass(frozen=True, kw_only=True)
class ReaderControl:
    """Written by the runtime, read by the source before every micro-batch. A new file takes effect with the next batch.

    `bounded_topics` maps the folder of each topic the operator writes to the greatest number of records its slowest
    consumer may be behind; while one is exceeded the source hands out no new records. The bound is checked when a batch
    begins, so the lag can exceed it by what one batch puts out.
    """

    partitions: int
    max_records_per_batch: int | None = None
    slot_rate: float | None = None
    paused: bool = False
    """No new records until further notice, so that the query comes to rest between two batches."""
    bounded_topics: dict[str, int] = field(default_factory=dict)
    weights: list[float] | None = None
    """How much of a batch every partition gets beside the others; null: all the same."""
    columns: list[str] | None = None
    """Those that the query depends on; a source may hand out nulls for all others. Null: every one."""

    def __post_init__(self) -> None:
        for name, least in (("partitions", 1), ("max_records_per_batch", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise BadInputError(f"{name} must be at least {least}, got {value}")
        if self.slot_rate is not None and not self.slot_rate > 0:
            raise BadInputError(f"slot_rate must be more than 0 records/s, got {self.slot_rate}")
        if self.weights is not None and (len(self.weights) != self.partitions or not min(self.weights) > 0):
            raise BadInputError(f"weights must be {self.partitions} numbers above 0, got {self.weights}")

    def save(self, path: Path) -> None:
        replace_file(Path(path), json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, path: Path) -> ReaderControl:
        try:
            return cls(**json.loads(Path(path).read_bytes()))
        except (OSError, TypeError, ValueError) as error:
            raise BadInputError(f"control file {path} cannot be used: {error}") from error


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

    def noting(self, held: bool, now_s: float) -> HeldBack:
        """The account after looking once more: waits begin and end at the moments they are seen."""
        if held and self.since_s is None:
            return HeldBack(total_s=self.total_s, since_s=now_s)
        if not held and self.since_s is not None:
            return HeldBack(total_s=self.seconds(now_s))
        return self

    def save_beside(self, control_path: Path) -> None:
        replace_file(_held_path(control_path), json.dumps(asdict(self)).encode())

    @classmethod
    def beside(cls, control_path: Path) -> HeldBack:
        try:
            return cls(**json.loads(_held_path(control_path).read_bytes()))
        except FileNotFoundError:
            return cls()


def _held_path(control_path: Path) -> Path:
    control_path = Path(control_path)
    return control_path.with_name(f"{control_path.name}.held")
