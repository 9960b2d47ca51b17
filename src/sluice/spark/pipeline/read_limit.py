"""How many records the next micro-batch may read, so that batches stay near a target duration whatever the backlog.

A batch costs a fixed overhead and so much per record: `duration = overhead + records * per_record`. The overhead comes
from a line through the last batches by least squares, the cost per record from the last batch that was large enough to
tell. Both together say how large a batch of the target duration is, and the next one has that size: no creeping up.
The first steps are smaller, because little is known; three lead from a guess to the size that stays. Where the overhead
alone is half the target or more, batches get twice the overhead instead: smaller ones would spend their time on it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

FIRST_RECORDS_PER_SLOT = 10_000
FIRST_NATIVE_RECORDS_PER_SLOT = 200_000
"""Where all work is done in the JVM a record costs microseconds: a batch of fewer would show nothing but overhead."""
MOST_FIRST_NATIVE_RECORDS = 400_000
LARGEST_STEP_UP = 16.0
LARGEST_STEP_DOWN = 4.0
"""A batch is slow for many reasons that pass: the size it suggests is not taken at once."""
FULL_SHARE = 0.9
"""A batch this close to its limit was cut short by it; a smaller one took all there was."""
TELLING_SHARE = 0.25
"""Of the limit. A batch with fewer records shows the overhead, and nothing of what a record costs."""
LEAST_DIFFERENCE = 0.2
"""Overhead and work can be separated only if the sizes of batches differ by this share."""
ASSUMED_OVERHEAD = 0.65
"""Of the duration of a short batch, until batches of different sizes have shown it."""
EXPLORING_STEP = 1.3
NOISE = 0.05
"""Of the target: durations of equal batches differ by so much. A batch that is no longer than the overhead says no more
about the cost of a record than that it is below this."""
WARMING_TARGETS = 3.0
"""How much longer than its target the third batch of a backlog may take. The JVM still compiles what it runs: batches
that are short then are slow for a reason that passes, and the size they suggest is too small."""
LONGEST_TRIAL = 8.0
"""Of the target: what a batch may take if all of the duration of the one before it was work."""
START_UP_S = 5.0
"""A run's first batch also loads classes, compiles and starts workers; beyond this its duration is work."""
LARGEST_FIRST_STEP_DOWN = 1.5
"""On a busy machine all that takes much longer, and a guess is small already."""
REMEMBERED_BATCHES = 8
LEAST_S = 1e-3
PACED_SHRINK = 2.0
FIRST_PACED_SHARE = 0.25
"""Of what paced slots do in the target time. Operators begin one after the other, each with the first output of the one
before: short first batches let a chain of them begin sooner."""


@dataclass(frozen=True, kw_only=True)
class ReadLimit:
    """A limit in records per batch, moved by what the last batch took. Pure: `after` gives the next one."""

    target_s: float
    parallelism: int
    records: int
    records_before: int | None = None
    """The limit before it was last moved: the next batch may be planned when Spark reports on the last one."""
    slot_rate: float | None = None
    is_guess: bool = False
    """Nothing has been seen of the query yet."""
    is_warming: bool = False
    """One batch has been seen, and there was more to read than it had."""
    overhead_s: float | None = None
    """Null until it has been seen."""
    seen: tuple[tuple[int, float], ...] = ()
    """Records and seconds of the last batches at this parallelism."""

    @staticmethod
    def first(
        *, target_s: float, parallelism: int, slot_rate: float | None = None, known_records: int | None = None
    ) -> ReadLimit:
        """`known_records` is the limit that an earlier run of the same query has found at this parallelism."""
        nominal = parallelism * (FIRST_RECORDS_PER_SLOT if slot_rate is None else slot_rate * target_s)
        limit = ReadLimit(target_s=target_s, parallelism=parallelism, records=0, slot_rate=slot_rate)
        if slot_rate is not None:
            return replace(limit, is_guess=True, records=max(parallelism, round(FIRST_PACED_SHARE * nominal)))
        if known_records is None:
            return replace(limit, is_guess=True)._with_records(nominal)
        return limit._with_records(known_records)

    def native(self) -> ReadLimit:
        """Of a query without Python in its plan: a guess may be larger, unless slots are paced."""
        if not self.is_guess or self.slot_rate is not None:
            return self
        guess = min(MOST_FIRST_NATIVE_RECORDS, FIRST_NATIVE_RECORDS_PER_SLOT * self.parallelism)
        return self._with_records(max(self.records, guess))

    def after_first(self, *, batch_records: int, batch_s: float) -> ReadLimit:
        """After the first batch of a run, which tells too little to change what an earlier run has found."""
        if not self.is_guess or not self._was_full(batch_records) or batch_s < LEAST_S:
            return self
        step = min(self._safe_step(batch_s), self._step(self.target_s, batch_s - START_UP_S))
        step = max(step, 1 / LARGEST_FIRST_STEP_DOWN)
        return replace(self, is_guess=False, is_warming=True)._with_records(batch_records * step)

    def after(self, *, batch_records: int, batch_s: float) -> ReadLimit:
        """Upwards only if the limit was what bound the batch."""
        if batch_records <= 0 or batch_s < LEAST_S:
            return self
        learned = replace(self, is_warming=False) if self.is_warming else self._learned(batch_records, batch_s)
        if batch_records < TELLING_SHARE * self.records:
            return learned
        was_full = self._was_full(batch_records)
        target_s = WARMING_TARGETS * self.target_s if self.is_warming and was_full else self.target_s
        step = learned._next_step(batch_s, target_s)
        if step > 1 and not was_full:
            return learned
        return learned._with_records(batch_records * step)

    def rescaled(self, parallelism: int, slot_rate: float | None = None) -> ReadLimit:
        """Records per slot stay what they were, or change as the rate that paced slots have among so many."""
        faster = slot_rate / self.slot_rate if slot_rate and self.slot_rate else 1.0
        changed = replace(self, parallelism=parallelism, seen=(), slot_rate=slot_rate or self.slot_rate)
        return changed._with_records(faster * self.records * parallelism / self.parallelism)

    def _was_full(self, batch_records: int) -> bool:
        return batch_records >= FULL_SHARE * min(self.records, self.records_before or self.records)

    def _next_step(self, batch_s: float, target_s: float) -> float:
        """From the size of a batch that took so long to that of one that takes as long as it should."""
        if self.overhead_s is None:
            # of a batch that is nearly long enough it cannot be most: that would let the next one shrink for nothing
            assumed_s = ASSUMED_OVERHEAD * max(0.0, min(batch_s, self.target_s - batch_s))
            step = self._step(target_s - assumed_s, batch_s - assumed_s)
            # only another size can show the overhead
            return step if abs(step - 1) >= EXPLORING_STEP - 1 else EXPLORING_STEP
        goal_s = max(target_s, 2 * self.overhead_s)
        return min(self._safe_step(batch_s), self._step(goal_s - self.overhead_s, batch_s - self.overhead_s))

    def _step(self, room_s: float, work_s: float) -> float:
        noise_s = NOISE * self.target_s
        return min(LARGEST_STEP_UP, max(1 / LARGEST_STEP_DOWN, room_s / (max(0.0, work_s) + noise_s)))

    def _safe_step(self, batch_s: float) -> float:
        """Keeps the next batch within bounds even if the last one was nothing but work."""
        return min(LARGEST_STEP_UP, max(1.0, LONGEST_TRIAL * self.target_s / batch_s))

    def _learned(self, batch_records: int, batch_s: float) -> ReadLimit:
        """With the overhead known better; batches of equal size teach nothing about it."""
        seen = (*self.seen[1 - REMEMBERED_BATCHES :], (batch_records, batch_s))
        sizes, durations_s = [records for records, _ in seen], [duration_s for _, duration_s in seen]
        if max(sizes) - min(sizes) < LEAST_DIFFERENCE * max(sizes):
            return replace(self, seen=seen, is_guess=False)
        line = statistics.linear_regression(sizes, durations_s)
        # a query gets faster while the JVM compiles it: the larger batch then took less, and a line says nothing
        overhead_s = line.intercept if line.slope > 0 else ASSUMED_OVERHEAD * min(durations_s)
        return replace(self, seen=seen, is_guess=False, overhead_s=min(max(0.0, overhead_s), min(durations_s)))

    def _with_records(self, records: float) -> ReadLimit:
        if self.slot_rate is not None:
            nominal = self.slot_rate * self.target_s * self.parallelism
            # a paced slot is as slow in a small batch, so shrinking further would only add overhead
            records = min(nominal, max(nominal / PACED_SHRINK, records))
        return replace(self, records=max(self.parallelism, round(records)), records_before=self.records)
