"""What is kept of one operator between two observations, and how a window of it is closed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from sluice.spark.metrics import Batch, OperatorWindow, Stage, instance_seconds
from sluice.spark.pipeline.folders import Folders, last_batches
from sluice.spark.pipeline.query import OperatorQuery
from sluice.spark.topic import HeldBack, Topic


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
    topics: dict[str, Topic]
    folders: Folders
    is_source: bool
    trigger_s: float
    bound_records: int | None
    began_s: float = field(default_factory=time.time)
    batches: list[Batch] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    read_records: int = 0

    def __post_init__(self) -> None:
        self.first = self.last = self.counters(self.began_s)
        self._changes = [(self.began_s, self.query.state.parallelism)]
        self._most_slots: dict[str, int] = {}
        self._warm_ups: set[int] = set()

    def on_batch(self, batch: Batch) -> None:
        """A run's first batch with records, and the first on more slots than ever, start Python processes."""
        self.batches.append(batch)
        self.read_records += batch.total_records
        # a trigger may have fired just before this ledger began
        slots = max(count for since_s, count in self._changes if since_s <= max(batch.started_s, self._changes[0][0]))
        if batch.total_records and slots > self._most_slots.get(batch.run_id, 0):
            self._most_slots = {batch.run_id: slots}
            self._warm_ups.add(batch.batch_id)

    def on_rescale(self) -> None:
        self._changes.append((time.time(), self.query.state.parallelism))

    def counters(self, unix_s: float) -> Counters:
        name, inputs = self.query.name, self.query.query.inputs
        return Counters(
            position=sum(self.topics[topic].consumers()[name] for topic in inputs),
            input_end=sum(self.topics[topic].end_offset() for topic in inputs),
            held_back_s=max(HeldBack.beside(self.folders.control(name, topic)).seconds(unix_s) for topic in inputs),
        )

    def unreported(self) -> int:
        """Records its offsets moved past that Spark did not count as read; negative if it read some twice."""
        return self.counters(time.time()).position - self.first.position - self.read_records

    def waiting_s(self, unix_s: float) -> float:
        """How long the record it reads next, or reads now, has been in its topic; 0 if there is none."""
        waits_s = [0.0]
        for topic in (self.topics[name] for name in self.query.query.inputs):
            arrived_s = topic.arrival_time_s(topic.consumers()[self.query.name])
            waits_s.append(0.0 if arrived_s is None else unix_s - arrived_s)
        return max(waits_s)

    def close_window(self, unix_s: float) -> OperatorWindow:
        """Everything since the last call, up to now or to where the running batch began."""
        ended_s = max(self.began_s, self._running_batch_began_s() or unix_s)
        before, now = self.last, self.counters(unix_s)
        # a restarted query counts from 0 again
        held_s = now.held_back_s - (before.held_back_s if now.held_back_s >= before.held_back_s else 0.0)
        window = OperatorWindow(
            parallelism=self.query.state.parallelism,
            began_s=self.began_s,
            ended_s=ended_s,
            batches=tuple(self.batches),
            stages=tuple(self.stages),
            instance_seconds=instance_seconds(self._changes, self.began_s, ended_s),
            warm_ups=frozenset(self._warm_ups),
            lag_records=now.lag,
            lag_change_records=now.lag - before.lag,
            held_back_s=held_s,
            arrived_records=now.input_end - before.input_end if self.is_source else None,
            bound_records=None if self.is_source else self.bound_records,
            paced=self.query.query.slot_rate is not None,
            trigger_s=self.trigger_s,
        )
        newest = max((batch.batch_id for batch in self.batches), default=-1)
        # stage data of a batch can arrive before its progress: keep what no batch has claimed
        self.stages = [stage for stage in self.stages if stage.batch_id > newest]
        self.batches, self._warm_ups = [], set()
        self.began_s, self.last, self._changes = ended_s, now, self._changes[-1:]
        return window

    def _running_batch_began_s(self) -> float | None:
        """When the batch now running was logged as begun; None if the operator waits."""
        checkpoint = self.folders.checkpoint(self.query.name)
        begun, done = last_batches(checkpoint)
        if begun == done or not self.query.in_batch or any(batch.batch_id >= begun for batch in self.batches):
            return None
        try:
            return Path(checkpoint / "offsets" / str(begun)).stat().st_mtime
        except FileNotFoundError:
            return None
