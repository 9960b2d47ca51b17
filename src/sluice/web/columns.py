"""A run as columns of numbers, one row per cycle, and as few rows as a picture needs.

Rows are aggregated by the server, so that a page draws as much of 100,000 cycles as of 1,000.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from typing import Any

UNKNOWN = math.nan
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
    return short(max(known) if largest else math.fsum(known) / len(known))


def short(value: float | None) -> float | None:
    """Five significant digits; null for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")


def plain(data: Any) -> Any:
    """JSON data without numbers that JSON does not have."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    return [plain(value) for value in data] if isinstance(data, list | tuple) else data
