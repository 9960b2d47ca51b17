"""How many records the next micro-batch may read, so that batches stay near a target duration whatever the backlog.

A batch costs a fixed overhead and so much per record: `duration = overhead + records * per_record`. Both are estimated
from successive batches. Where the overhead alone is half the target or more, batches get twice the overhead instead:
smaller ones would spend their time on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST_RECORDS_PER_SLOT = 10_000
LARGEST_STEP = 2.0
FULL_SHARE = 0.9
"""A batch this close to its limit was cut short by it; a smaller one took all there was."""
LEAST_DIFFERENCE = 0.2
"""Two batches tell overhead and work apart only if their sizes differ by this share."""
LEAST_WORK_SHARE = 0.05
LEAST_S = 1e-3


@dataclass(frozen=True, kw_only=True)
class ReadLimit:
    """A limit in records per batch, moved by what the last batch took. Pure: `after` gives the next one."""

    target_s: float
    parallelism: int
    records: int
    slot_rate: float | None = None
    overhead_s: float = 0.0
    anchor: tuple[int, float] | None = None
    """Records and seconds of the last batch whose size differed enough from the one before it."""

    @staticmethod
    def first(*, target_s: float, parallelism: int, slot_rate: float | None = None) -> ReadLimit:
        per_slot = FIRST_RECORDS_PER_SLOT if slot_rate is None else slot_rate * target_s
        records = max(1, round(per_slot * parallelism))
        return ReadLimit(target_s=target_s, parallelism=parallelism, records=records, slot_rate=slot_rate)

    def after(self, *, batch_records: int, batch_s: float) -> ReadLimit:
        """At most twofold, and only upwards if the limit was what bound the batch."""
        if batch_records <= 0 or batch_s < LEAST_S:
            return self
        learned = self._learned(batch_records, batch_s)
        overhead_s = min(learned.overhead_s, batch_s * (1 - LEAST_WORK_SHARE))
        goal_s = max(self.target_s, 2 * overhead_s)
        wanted = (goal_s - overhead_s) * batch_records / (batch_s - overhead_s)
        bound = batch_records >= FULL_SHARE * self.records
        base = self.records if bound else min(self.records, batch_records)
        if wanted > base and not bound:
            return learned
        return learned._with_records(min(base * LARGEST_STEP, max(base / LARGEST_STEP, wanted)))

    def rescaled(self, parallelism: int) -> ReadLimit:
        """Records per slot stay what they were."""
        changed = replace(self, parallelism=parallelism, anchor=None)
        return changed._with_records(self.records * parallelism / self.parallelism)

    def _learned(self, batch_records: int, batch_s: float) -> ReadLimit:
        if self.anchor is None:
            return replace(self, anchor=(batch_records, batch_s))
        records, duration_s = self.anchor
        if abs(batch_records - records) < LEAST_DIFFERENCE * max(batch_records, records):
            return self
        per_record_s = (batch_s - duration_s) / (batch_records - records)
        seen_s = min(batch_s, duration_s, max(0.0, batch_s - per_record_s * batch_records))
        return replace(self, overhead_s=(self.overhead_s + seen_s) / 2, anchor=(batch_records, batch_s))

    def _with_records(self, records: float) -> ReadLimit:
        if self.slot_rate is not None:
            nominal = self.slot_rate * self.target_s * self.parallelism
            # a paced slot is as slow in a small batch, so shrinking further would only add overhead
            records = min(nominal, max(nominal / LARGEST_STEP, records))
        return replace(self, records=max(self.parallelism, round(records)))
