"""What is kept of one operator between two observations, and how a window of it is closed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sluice.spark.observe.events import Batch, BatchKey, BatchStage
from sluice.spark.observe.window import Backlog, BatchLog, QueryWindow, most_slots, slots_since
from sluice.spark.pipeline.folders import Folders, last_batches
from sluice.spark.pipeline.query import OperatorQuery
from sluice.spark.pipeline.read_count import ReadCount
from sluice.spark.topic import HeldBack
from sluice.spark.topic.interface import Position, RecordLog


@dataclass(frozen=True)
class Counters:
    """Where the operator's topics stand at one moment."""

    position: int
    """Records it has finished reading, over all inputs."""
    input_end: int
    held_back_s: float

    @property
    def lag(self) -> int:
        return self.input_end - self.position


@dataclass
class Ledger:
    """Filled by Spark's listener thread and by the loop's; the engine holds its lock around every call."""

    query: OperatorQuery
    topics: Mapping[str, RecordLog]
    folders: Folders
    is_source: bool
    trigger_s: float
    bound_records: int | None
    began_s: float = field(default_factory=time.time)
    read: ReadCount = field(default_factory=ReadCount)

    def __post_init__(self) -> None:
        self.last = self.counters(self.began_s)
        self._first_positions = self._positions()
        self._log = BatchLog(self.began_s)
        self._slot_changes = [(self.began_s, self.query.state.parallelism)]
        self._most_slots: dict[str, int] = {}
        self._warm_ups: set[BatchKey] = set()

    def on_batch(self, batch: Batch) -> None:
        """A run's first batch with records, and the first on more slots than ever, start Python processes."""
        self._log.batches.append(batch)
        self.read.add(batch)
        slots = most_slots(self._slot_changes, batch.started_s, batch.started_s)
        if batch.records and slots > self._most_slots.get(batch.run_id, 0):
            self._most_slots = {batch.run_id: slots}
            self._warm_ups.add(batch.key)

    @property
    def read_records(self) -> int:
        return self.read.records

    def on_stages(self, stages: Sequence[BatchStage]) -> None:
        self.read.add_stages(stages)
        self._log.add_stages(stages)

    def on_rescale(self) -> None:
        self._slot_changes.append((time.time(), self.query.state.parallelism))

    def counters(self, unix_s: float) -> Counters:
        name, inputs = self.query.name, self.query.query.inputs
        return Counters(
            position=sum(self.topics[topic].consumers()[name] for topic in inputs),
            input_end=sum(self.topics[topic].end_offset() for topic in inputs),
            held_back_s=max(HeldBack.beside(self.folders.control(name, topic)).seconds(unix_s) for topic in inputs),
        )

    def passed_records(self) -> int:
        """Exactly how many records its position has moved past since the start; may have to read them."""
        first, now = self._first_positions, self._positions()
        return sum(self.topics[topic].records_between(first[topic], now[topic]) for topic in first)

    def waiting_records(self) -> int:
        """Exactly how many records are left to be read."""
        now = self._positions()
        return sum(self.topics[name].records_between(now[name], self.topics[name].end_position()) for name in now)

    def _positions(self) -> dict[str, Position]:
        return {topic: self.topics[topic].position(self.query.name) for topic in self.query.query.inputs}

    def waiting_s(self, unix_s: float) -> float:
        """How long the record it reads next, or reads now, has been in its topic; 0 if there is none."""
        return max(self.topics[name].waiting_s(self.query.name, unix_s) for name in self.query.query.inputs)

    def close_window(self, unix_s: float, interval_s: float) -> QueryWindow:
        """Everything since the last call, `interval_s` ago, up to now or to where the running batch began."""
        before, now = self.last, self.counters(unix_s)
        self.last = now
        # a restarted query counts from 0 again
        held_s = now.held_back_s - (before.held_back_s if now.held_back_s >= before.held_back_s else 0.0)
        span = self._log.close(unix_s, self._running_batch_began_s())
        window = QueryWindow(
            span=span,
            parallelism=self.query.state.parallelism,
            slots=self.query.state.parallelism,
            slot_changes=tuple(self._slot_changes),
            backlog=Backlog(
                lag_records=now.lag,
                lag_rate=(now.lag - before.lag) / interval_s,
                arrival_rate=(now.input_end - before.input_end) / interval_s if self.is_source else None,
                waited_s=self.waiting_s(unix_s) if self.is_source else None,
                bound_records=None if self.is_source else self.bound_records,
            ),
            trigger_s=self.trigger_s,
            is_idle=now.lag == 0 and not span.batches and not self._log.batches,
            is_source=self.is_source,
            is_operator=True,
            paced=self.query.query.slot_rate is not None,
            held_back=held_s / interval_s,
            warm_ups=frozenset(self._warm_ups),
        )
        self._warm_ups &= {batch.key for batch in self._log.batches}
        self._slot_changes = slots_since(self._slot_changes, span.ended_s)
        return window

    def _running_batch_began_s(self) -> float | None:
        """When the batch now running was logged as begun; None if the operator waits."""
        checkpoint = self.folders.checkpoint(self.query.name)
        begun, done = last_batches(checkpoint)
        if begun == done or not self.query.in_batch or any(batch.batch_id >= begun for batch in self._log.batches):
            return None
        try:
            return Path(checkpoint / "offsets" / str(begun)).stat().st_mtime
        except FileNotFoundError:
            return None
