"""How many records are due by when: a rate curve in ticks, exact in whole records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sluice.lab.workloads.base import Floats, RateCurve

TICK_S = 0.25
"""Short enough that arrivals look continuous to queries with batches of a second, long enough for cheap commits."""

MILLION = 1_000_000


@dataclass(frozen=True)
class Block:
    """Records `first` to `first + count`, due `due_s` seconds after the start."""

    tick: int
    first: int
    count: int
    due_s: float


class Schedule:
    """Blocks of one stream, one per tick. The same curve gives the same blocks, whatever tick it begins with."""

    def __init__(self, curve: RateCurve, *, tick_s: float = TICK_S, tick: int = 0) -> None:
        if not tick_s > 0:
            raise ValueError(f"tick_s must be above 0, got {tick_s}")
        self._curve = curve
        self._tick_s = tick_s
        self._tick = tick
        self._due_millionths = int(self._millionths(0, tick).sum())

    def next(self) -> Block:
        """The next tick's block; a rate holds for its tick, fractions of records are carried over."""
        first = self._due_millionths // MILLION
        self._due_millionths += int(self._millionths(self._tick, self._tick + 1)[0])
        self._tick += 1
        count = self._due_millionths // MILLION - first
        return Block(self._tick - 1, first, count, self._tick * self._tick_s)

    def _millionths(self, start: int, end: int) -> npt.NDArray[np.int64]:
        """Records due in each tick, in millionths: whole numbers add up the same in any order."""
        times_s: Floats = np.arange(start, end, dtype=np.float64) * self._tick_s
        rates = np.maximum(0.0, self._curve(times_s))
        return np.round(rates * self._tick_s * MILLION).astype(np.int64)
