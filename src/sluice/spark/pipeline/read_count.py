"""How many records an operator read, from what Spark's tasks counted. Pure.

A task that was lost, or whose worker was, is done again and counts its records again, though the batch takes effect
once. In such a batch what the offsets moved past is what was read; in all others a surplus is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sluice.spark.observe.events import Batch, BatchKey, BatchStage

NOTICED_S = 5.0
"""How much before or after the end of a batch a lost worker may be noticed."""


@dataclass
class ReadCount:
    _counted: int = 0
    _surplus: dict[BatchKey, tuple[Batch, int]] = field(default_factory=dict)
    _repeated: set[BatchKey] = field(default_factory=set)
    _losses_s: list[float] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        self._counted += batch.records
        if batch.offset_records is not None and batch.records > batch.offset_records:
            self._surplus[batch.key] = (batch, batch.records - batch.offset_records)

    def add_stages(self, stages: Iterable[BatchStage]) -> None:
        self._repeated |= {stage.key for stage in stages if stage.repeated}

    def worker_lost(self, unix_s: float) -> None:
        self._losses_s.append(unix_s)

    @property
    def records(self) -> int:
        return self._counted - sum(surplus for batch, surplus in self._surplus.values() if self._was_repeated(batch))

    def _was_repeated(self, batch: Batch) -> bool:
        return batch.key in self._repeated or any(
            batch.started_s - NOTICED_S <= lost_s <= batch.ended_s + NOTICED_S for lost_s in self._losses_s
        )
