"""What all our sources have in common: they are asked anew for every batch, and a small file steers them.

How many partitions and rows a batch gets is read from that file for every micro-batch, so a running query changes its
parallelism without a stop. The number is part of the batch's end offset, as are weights where tasks differ: a batch
that is replayed after a crash has the same tasks, whatever the parallelism is by then.

`Steering` plans; the driver's Python process holds one per input of a query. `SteeredReader` is the same as a data
source in Python, which Spark keeps in a process of its own beside the driver and whose `read` runs in Python workers.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from sluice.spark.topic.control import HeldBack, ReaderControl
from sluice.spark.topic.interface import Position, RecordLog, open_log
from sluice.spark.topic.pacing import SlotClock

MOST_ROWS = 2**62
"""Spark asks for the default limit once, at the start; the real one is in the control file and changes."""

Offset = dict[str, Any]
"""`{"topic": name of the dataset, "offset": position}`: the name tells the inputs of a join apart in progress events.

The end of a batch also has its number of `partitions` and, unless all are alike, their `weights`; that of a paced one
its `head_start_s`, so that progress events tell how long its slots worked.
"""

Part = TypeVar("Part")
"""What one task is to read."""


@dataclass(frozen=True)
class Pace:
    slot_rate: float | None
    head_start_s: float


class Steering(ABC, Generic[Part]):
    """One input of one run of a query over a `RecordLog`; what differs between logs is abstract."""

    def __init__(self, locator: str, name: str, consumer: str, control: Path) -> None:
        self._locator = locator
        self._name = name
        self._consumer = consumer
        self.control_path = control
        self._log: RecordLog | None = None
        self._bounded: dict[str, RecordLog] = {}
        self._held: HeldBack | None = None
        self._target: Position = None
        self._slots = SlotClock(time.time())
        self.columns: list[str] | None = None
        """As the control file had it when a batch was last planned."""

    @abstractmethod
    def planned(self, start: Position, end: Position, weights: Sequence[float], pace: Pace) -> list[Part]:
        """A partition for every weight, each with its share of the records."""

    @abstractmethod
    def limited(self, start: Position, end: Position, most_records: int) -> Position:
        """`end`, or as far from `start` as that many records."""

    @abstractmethod
    def count(self, start: Position, end: Position) -> int: ...

    @abstractmethod
    def arrived_s(self, start: Position) -> float | None:
        """Unix time at which the first record from there on came; null where that is not known."""

    def first_offset(self) -> Offset:
        return self._offset(self.log.register(self._consumer))

    def end_after(self, start: Offset, *, limited: bool) -> Offset:
        """Where the batch from `start` on ends; `start` itself if there is to be none. Unlimited, all there is.

        Asked only when the batch that ended at `start` is in Spark's commit log: nothing before it is read again.
        """
        first = start["offset"]
        self.log.acknowledge(self._consumer, first)
        control = ReaderControl.load(self.control_path)
        if control.paused or (self._target is None and self._is_held(control)):
            self._slots.rest(time.time())
            return start
        end = self.log.end_position() if self._target is None else self._target
        if limited:
            end = self.limited(first, end, control.max_records_per_batch or MOST_ROWS)
        if self.count(first, end) <= 0:
            return start
        weights = {} if control.weights is None else {"weights": control.weights}
        head_start = self._head_start(control, first, end)
        return {**self._offset(end), "partitions": control.partitions, **weights, **head_start}

    def newest_offset(self) -> Offset:
        return self._offset(self.log.end_position())

    def stop_at_newest(self) -> None:
        """Nothing that comes from now on is read."""
        self._target = self.log.end_position()

    def parts(self, start: Offset, end: Offset) -> list[Part]:
        if start["offset"] == end["offset"]:
            return []
        control = ReaderControl.load(self.control_path)
        parts = int(end.get("partitions", control.partitions))
        self.columns = control.columns
        pace = Pace(control.slot_rate, end.get("head_start_s", 0.0))
        return self.planned(start["offset"], end["offset"], end.get("weights") or [1.0] * parts, pace)

    @property
    def log(self) -> RecordLog:
        if self._log is None:
            self._log = open_log(self._locator)
        return self._log

    def _offset(self, position: Position) -> Offset:
        return {"topic": self._name, "offset": position}

    def _head_start(self, control: ReaderControl, first: Position, end: Position) -> dict[str, float]:
        if control.slot_rate is None:
            return {}
        now_s = time.time()
        arrived_s = self.arrived_s(first)
        head_start_s = self._slots.head_start_s(
            now_s,
            arrived_s=now_s if arrived_s is None else arrived_s,
            records=self.count(first, end),
            rate=control.slot_rate * control.partitions,
        )
        return {"head_start_s": round(head_start_s, 3)}

    def _is_held(self, control: ReaderControl) -> bool:
        """Whether a topic this operator writes to is full; every change is noted for the runtime."""
        bounds = control.bounded_topics.items()
        held = any(self._bounded_topic(locator).slowest_lag_records() > most for locator, most in bounds)
        account = (self._held or HeldBack()).noting(held, time.time())
        if account is not self._held:
            account.save_beside(self.control_path)
            self._held = account
        return held

    def _bounded_topic(self, locator: str) -> RecordLog:
        if locator not in self._bounded:
            self._bounded[locator] = open_log(locator)
        return self._bounded[locator]


class SteeredReader(Steering[InputPartition], DataSourceStreamReader, SupportsTriggerAvailableNow):
    """As Spark's Python data sources have it."""

    def initialOffset(self) -> Offset:  # noqa: N802
        return self.first_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(MOST_ROWS)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        return self.end_after(start, limited=isinstance(limit, ReadMaxRows))

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        return self.newest_offset()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.stop_at_newest()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return self.parts(start, end)

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get the reader without its open topics."""
        return {**self.__dict__, "_log": None, "_bounded": {}}
