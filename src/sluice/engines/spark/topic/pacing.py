"""A slot of a given speed: records leave no faster than `slot_rate` records/s, so two cores can stand in for dozens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pyarrow as pa

STEP_S = 0.25
"""Records leave in portions of this much time: the task's later stages work while the next portion is waited for."""


def paced(
    batches: Iterator[pa.RecordBatch],
    slot_rate: float | None,
    now_s: Callable[[], float] = time.monotonic,
    sleep_s: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """The same records, each portion handed on when the slot would have finished it.

    The clock starts with the task: time lost elsewhere in the task is made up for, so the rate holds on a busy machine.
    """
    if slot_rate is None:
        yield from batches
        return
    started_s = now_s()
    portion = max(1, round(slot_rate * STEP_S))
    done = 0
    for batch in batches:
        for first in range(0, batch.num_rows, portion):
            part = batch.slice(first, portion)
            done += part.num_rows
            sleep_s(max(0.0, started_s + done / slot_rate - now_s()))
            yield part
