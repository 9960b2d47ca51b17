"""A slot of a given speed: records leave no faster than `slot_rate` records/s, so two cores can stand in for dozens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

STEP_S = 0.25
"""Records leave in portions of this much time: the task's later stages work while the next portion is waited for."""
MOST_HEAD_START_S = 5.0
"""A machine that is further behind than this has stalled: its slots do not make up for it."""


@dataclass
class SlotClock:
    """Until when the slots of an operator have work, were they slots of an engine without batches.

    Such a slot goes on while Spark plans, commits and waits for its trigger. A batch therefore gets a head start: the
    time since its slots became free and its first record was there, at most what its records take.
    """

    free_s: float

    def head_start_s(self, now_s: float, *, arrived_s: float, records: int, rate: float) -> float:
        """For a batch of so many records, planned now; `rate` is that of all slots together, in records/s."""
        work_s = records / rate
        began_s = max(self.free_s, arrived_s, now_s - MOST_HEAD_START_S)
        self.free_s = began_s + work_s
        return max(0.0, min(now_s - began_s, work_s))

    def rest(self, now_s: float) -> None:
        """The operator was not allowed to work until now."""
        self.free_s = max(self.free_s, now_s)


def paced(
    batches: Iterator[pa.RecordBatch],
    slot_rate: float | None,
    head_start_s: float = 0.0,
    now_s: Callable[[], float] = time.monotonic,
    sleep_s: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """The same records, each portion handed on when the slot would have finished it.

    The clock starts with the task: time lost elsewhere in the task is made up for, so the rate holds on a busy machine.
    """
    if slot_rate is None:
        yield from batches
        return
    started_s = now_s() - head_start_s
    portion = max(1, round(slot_rate * STEP_S))
    done = 0
    for batch in batches:
        for first in range(0, batch.num_rows, portion):
            part = batch.slice(first, portion)
            done += part.num_rows
            sleep_s(max(0.0, started_s + done / slot_rate - now_s()))
            yield part
