"""Windows of whole batches of one query. Pure.

A window ends now if the query waits, or where the running batch began: what happens in a batch that is not over belongs
to the next window. A window without a finished batch knows its lag and no rates, unless nothing was there to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from sluice.spark.observe.events import Batch, BatchKey, BatchStage

SETTLE_S = 2.0
"""Spark's status store learns of a batch's stages a moment after the batch's progress event."""
STAGES_KEPT = 10_000
"""Of batches whose progress events have not come; more than that are of events that never will."""

SlotChanges = Sequence[tuple[float, int]]
"""(Unix time, task slots from then on); the first holds for all time before the second."""


def slot_seconds(changes: SlotChanges, began_s: float, ended_s: float) -> float:
    """Task slots integrated from `began_s` to `ended_s`."""
    total = 0.0
    for position, (since_s, slots) in enumerate(changes):
        until_s = changes[position + 1][0] if position + 1 < len(changes) else ended_s
        low = began_s if position == 0 else max(began_s, since_s)
        total += slots * max(0.0, min(ended_s, until_s) - low)
    return total


def most_slots(changes: SlotChanges, began_s: float, ended_s: float) -> int:
    """The most slots at any time between `began_s` and `ended_s`."""
    before = [slots for since_s, slots in changes if since_s <= began_s][-1:] or [changes[0][1]]
    return max(before + [slots for since_s, slots in changes if began_s < since_s <= ended_s])


def slots_since(changes: SlotChanges, began_s: float) -> list[tuple[float, int]]:
    """The changes that still count from `began_s` on."""
    passed = sum(1 for since_s, _ in changes if since_s <= began_s)
    return list(changes[max(0, passed - 1) :])


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """What waits at a query's inputs, as far as it is known."""

    lag_records: int | None = None
    lag_rate: float | None = None
    arrival_rate: float | None = None
    waited_s: float | None = None
    """How long the record it reads next, or reads now, has waited; 0 if none waits."""
    bound_records: int | None = None
    """The lag at which those that write its inputs are held back."""


@dataclass(frozen=True, kw_only=True)
class BatchSpan:
    """The whole batches between `began_s` and `ended_s` (Unix time, both between batches), and their stages."""

    began_s: float
    ended_s: float
    now_s: float
    batches: Sequence[Batch] = ()
    before: Batch | None = None
    """The last batch of earlier windows."""
    stages: Sequence[BatchStage] = ()

    @property
    def length_s(self) -> float:
        return self.ended_s - self.began_s

    @property
    def records(self) -> int:
        return sum(batch.records for batch in self.batches)

    @property
    def last(self) -> Batch | None:
        return self.batches[-1] if self.batches else self.before

    @property
    def is_disturbed(self) -> bool:
        """Tasks were lost in it: Spark counts again what was done again, and forgets the time of what was lost."""
        return any(stage.repeated for stage in self.stages)

    def stages_of(self, batch: Batch) -> list[BatchStage]:
        return [stage for stage in self.stages if stage.key == batch.key]


@dataclass(frozen=True, kw_only=True)
class QueryWindow:
    """One query on its task slots: the operator's own slots, or the cores of all executors of an application."""

    span: BatchSpan
    parallelism: int
    slots: int
    """Now; after a rescale others than those of the window's batches."""
    slot_changes: SlotChanges
    backlog: Backlog
    trigger_s: float | None = None
    is_idle: bool = False
    """No batch ran, and none was due: there was nothing to read."""
    is_source: bool = True
    """It reads what arrives from outside: its latency is that of the whole job."""
    paced: bool = False
    """A slot sleeps where one of a real cluster would compute."""
    is_operator: bool = False
    """Of a pipeline: a task that reads is a slot, and what its stages write is what it emits (not a cache, say)."""
    held_back: float | None = None
    """Share of the time in which a full topic downstream held it back; null where nothing can."""
    warm_ups: frozenset[BatchKey] = frozenset()
    """Batches in which Python processes were started: their task time says nothing about the work."""
    running_tasks: int | None = None
    """Tasks of the running batch now, for a window that this batch is longer than."""

    @property
    def slot_seconds(self) -> float:
        return slot_seconds(self.slot_changes, self.span.began_s, self.span.ended_s)


class BatchLog:
    """The finished batches and stages of one query that no window has covered yet."""

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.before: Batch | None = None
        self.batches: list[Batch] = []
        self._stages: list[BatchStage] = []

    def add_stages(self, stages: Iterable[BatchStage]) -> None:
        self._stages = [*self._stages, *stages][-STAGES_KEPT:]

    def skip_first(self) -> None:
        """Begin behind the first batch with records, which loads classes and compiles: its times mislead."""
        first = next((position for position, batch in enumerate(self.batches) if batch.records), None)
        if first is None:
            self.batches.clear()
            return
        self.before = self.batches[first]
        self.began_s = self.before.ended_s
        del self.batches[: first + 1]

    def close(self, now_s: float, until_s: float | None) -> BatchSpan:
        """The window so far, and begin the next. `until_s` is where the running batch began, if there is one."""
        staged = {stage.key for stage in self._stages}

        def is_settled(batch: Batch) -> bool:
            return not batch.records or batch.key in staged or batch.ended_s < now_s - SETTLE_S

        taken = list(takewhile(is_settled, self.batches))
        left = self.batches[len(taken) :]
        ended_s = left[0].started_s if left else until_s if until_s is not None else now_s
        keys = {batch.key for batch in taken}
        span = BatchSpan(
            began_s=self.began_s,
            ended_s=max(self.began_s, ended_s),
            now_s=now_s,
            batches=taken,
            before=self.before,
            stages=[stage for stage in self._stages if stage.key in keys],
        )
        if taken:
            newest = max(batch.batch_id for batch in taken)
            self._stages = [stage for stage in self._stages if stage.batch_id > newest]
        self.began_s, self.before, self.batches = span.ended_s, span.last, left
        return span


def backlog_of(span: BatchSpan) -> Backlog:
    """What the progress events of the window's batches say of the backlog.

    A batch takes what arrived since the one before it was planned, as far as its limit allows, and leaves the lag
    behind. So between the beginnings of two batches there arrived what the later ones read plus what the lag grew by.
    Where the lag is unknown this holds for sources without a limit; one that has both is known only by what it reads.
    """
    lag_records = span.last.lag_records if span.last else None
    if span.is_disturbed or not span.batches:
        return Backlog(lag_records=lag_records)
    first, *later = [*([span.before] if span.before else []), *span.batches]
    length_s = later[-1].started_s - first.started_s if later else 0.0
    if length_s <= 0:
        return Backlog(lag_records=lag_records)
    read = sum(batch.records for batch in later)
    if lag_records is None or first.lag_records is None:
        return Backlog(lag_records=lag_records, arrival_rate=read / length_s)
    grown = lag_records - first.lag_records
    return Backlog(lag_records=lag_records, lag_rate=grown / length_s, arrival_rate=max(0.0, (read + grown) / length_s))
