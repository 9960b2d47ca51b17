"""How many records the next micro-batch may read, so that batches stay near a target duration whatever the backlog.

A batch costs a fixed overhead and so much per record: `duration = overhead + records * per_record`, a line through the
last batches by least squares. Where the overhead alone is half the target or more, batches get twice the overhead
instead: smaller ones would spend their time on it.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, replace

FIRST_RECORDS_PER_SLOT = 10_000
LARGEST_STEP = 2.0
FULL_SHARE = 0.9
"""A batch this close to its limit was cut short by it; a smaller one took all there was."""
LEAST_DIFFERENCE = 0.2
"""Overhead and work can be separated only if the sizes of batches differ by this share."""
REMEMBERED_BATCHES = 8
LEAST_S = 1e-3


@dataclass(frozen=True, kw_only=True)
class ReadLimit:
    """A limit in records per batch, moved by what the last batch took. Pure: `after` gives the next one."""

    target_s: float
    parallelism: int
    records: int
    slot_rate: float | None = None
    overhead_s: float = 0.0
    seen: tuple[tuple[int, float], ...] = ()
    """Records and seconds of the last batches at this parallelism."""

    @staticmethod
    def first(*, target_s: float, parallelism: int, slot_rate: float | None = None) -> ReadLimit:
        per_slot = FIRST_RECORDS_PER_SLOT if slot_rate is None else slot_rate * target_s
        records = max(1, round(per_slot * parallelism))
        return ReadLimit(target_s=target_s, parallelism=parallelism, records=records, slot_rate=slot_rate)

    def after(self, *, batch_records: int, batch_s: float) -> ReadLimit:
        """At most twofold, and only upwards if the limit was what bound the batch."""
        if batch_records <= 0 or batch_s < LEAST_S:
            return self
        learned, per_record_s = self._learned(batch_records, batch_s)
        goal_s = max(self.target_s, 2 * learned.overhead_s)
        fitting = (goal_s - learned.overhead_s) / per_record_s if per_record_s > 0 else math.inf
        bound = batch_records >= FULL_SHARE * self.records
        base = self.records if bound else min(self.records, batch_records)
        if fitting > base and not bound:
            return learned
        return learned._with_records(min(base * LARGEST_STEP, max(base / LARGEST_STEP, fitting)))

    def rescaled(self, parallelism: int, slot_rate: float | None = None) -> ReadLimit:
        """Records per slot stay what they were, or change as the rate that paced slots have among so many."""
        faster = slot_rate / self.slot_rate if slot_rate and self.slot_rate else 1.0
        changed = replace(self, parallelism=parallelism, seen=(), slot_rate=slot_rate or self.slot_rate)
        return changed._with_records(faster * self.records * parallelism / self.parallelism)

    def _learned(self, batch_records: int, batch_s: float) -> tuple[ReadLimit, float]:
        """The limit with its overhead known better, and seconds per record: 0 where larger batches take no longer."""
        seen = (*self.seen[1 - REMEMBERED_BATCHES :], (batch_records, batch_s))
        sizes, durations_s = [records for records, _ in seen], [duration_s for _, duration_s in seen]
        if max(sizes) - min(sizes) >= LEAST_DIFFERENCE * max(sizes):
            line = statistics.linear_regression(sizes, durations_s)
            overhead_s = max(0.0, line.intercept) if line.slope > 0 else statistics.fmean(durations_s)
            return replace(self, seen=seen, overhead_s=overhead_s), max(0.0, line.slope)
        # equal sizes teach nothing; batches of the smallest size must grow before anything can be learned
        smallest = batch_records <= self.parallelism and len(seen) > 1
        return replace(self, seen=seen), 0.0 if smallest else max(0.0, batch_s - self.overhead_s) / batch_records

    def _with_records(self, records: float) -> ReadLimit:
        if self.slot_rate is not None:
            nominal = self.slot_rate * self.target_s * self.parallelism
            # a paced slot is as slow in a small batch, so shrinking further would only add overhead
            records = min(nominal, max(nominal / LARGEST_STEP, records))
        return replace(self, records=max(self.parallelism, round(records)))
