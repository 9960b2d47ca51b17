"""A run as columns of numbers, one row per cycle, and as few rows as a picture needs.

Rows are aggregated by the server, so that a page draws as much of 100,000 cycles as of 1,000.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator

UNKNOWN = math.nan
LARGEST = 1e300
"""Beyond it the rounding of a number may end outside of what JSON has."""
NAMES = ("time_s", "arriving", "read", "slots", "target", "latency_s")


class Columns:
    """Append-only. What is unknown is not a number inside and null outside."""

    def __init__(self) -> None:
        self._values = {name: array("d") for name in NAMES}

    def __len__(self) -> int:
        return len(self._values["time_s"])

    def append(
        self,
        time_s: float,
        arriving: float | None,
        read: float | None,
        slots: float,
        target: float,
        latency_s: float | None,
    ) -> None:
        times_s = self._values["time_s"]
        # a journal may say anything; a picture needs time that does not run backwards
        times_s.append(times_s[-1] if times_s and times_s[-1] > time_s else time_s)
        self._values["arriving"].append(UNKNOWN if arriving is None else arriving)
        self._values["read"].append(UNKNOWN if read is None else read)
        self._values["slots"].append(slots)
        self._values["target"].append(target)
        self._values["latency_s"].append(UNKNOWN if latency_s is None else latency_s)

    def last(self, name: str, count: int = 1) -> list[float]:
        """The newest known values."""
        return [value for value in self._values[name][-count:] if not math.isnan(value)]

    def at(self, name: str, row: int) -> float:
        return self._values[name][row]

    def share_above(self, name: str, limit: float) -> float | None:
        """Of the time in which it is known."""
        above = known = 0.0
        for duration_s, value in self._known(name):
            known += duration_s
            above += duration_s * (value > limit)
        return above / known if known else None

    def total(self, name: str) -> float | None:
        """A rate over all its time; null if it was never known."""
        found = [duration_s * value for duration_s, value in self._known(name)]
        return sum(found) if found else None

    def _known(self, name: str) -> Iterator[tuple[float, float]]:
        before_s = 0.0
        for time_s, value in zip(self._values["time_s"], self._values[name], strict=True):
            if value == value:
                yield time_s - before_s, value
            before_s = time_s

    def picture(self, points: int, since_s: float = 0.0, first: int = 0) -> dict[str, list[float | None]]:
        """At most so many rows, from a time or a row on: means of rates and slots, the largest latency."""
        times_s = self._values["time_s"]
        first = max(first, bisect_left(times_s, since_s))
        count = len(self) - first
        step = max(1, -(-count // max(1, points)))
        rows = range(first, len(self), step)
        shown: dict[str, list[float | None]] = {
            "time_s": [short(times_s[min(row + step, len(self)) - 1]) for row in rows]
        }
        for name in NAMES[1:]:
            column = self._values[name]
            if step == 1:
                shown[name] = [short(value) for value in column[first:]]
            else:
                shown[name] = [_merged(column[row : row + step], largest=name == "latency_s") for row in rows]
        return shown


def _merged(values: array[float], *, largest: bool) -> float | None:
    known = [value for value in values if value == value]
    if not known:
        return None
    return short(max(known) if largest else sum(known) / len(known))


def short(value: float | None) -> float | None:
    """Five significant digits; null for what is no number."""
    if value is None or not abs(value) < LARGEST:
        return None
    return float(f"{value:.5g}")
