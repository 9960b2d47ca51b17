"""A load that was recorded: a CSV file with a header, a minute and a rate per line."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from sluice.errors import BadInputError
from sluice.lab.workloads.base import Floats, require, require_load, workload
from sluice.registry import parameter


@workload("trace")
@dataclass(frozen=True, kw_only=True)
class Trace:
    """Rates in records/s from a CSV file with the columns `minute` and `rate`, one row per minute."""

    path: str = parameter("", "the CSV file")
    peak: float | None = parameter(
        None,
        "scale the trace so that its largest value is this share of the pipeline's peak rate "
        "(1: that rate, at most 10); none: records/s as in the file",
    )

    def __post_init__(self) -> None:
        if self.peak is not None:
            require(self.peak > 0, f"peak must be above 0, got {self.peak:g}")
            require_load("peak", self.peak)
        _ = self._rates

    @property
    def absolute(self) -> bool:
        return self.peak is None

    def loads(self, random: np.random.Generator) -> Floats:
        return self._rates if self.peak is None else self._rates / max(self._rates.max(), 1e-12) * self.peak

    @cached_property
    def _rates(self) -> Floats:
        return read_trace(Path(self.path))


def read_trace(path: Path) -> Floats:
    """Minutes must count up by one from the first row on: a hole is an error, not a zero."""
    if not str(path) or str(path) == ".":
        raise BadInputError("workload 'trace' needs path=FILE.csv, a file with the columns minute and rate")
    try:
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInputError(f"cannot read trace {str(path)!r}: {error}") from error
    if not rows or [cell.strip() for cell in rows[0]] != ["minute", "rate"]:
        raise BadInputError(f"trace {str(path)!r}: the first line must be 'minute,rate', got {rows[:1]}")
    rates: list[float] = []
    first_minute = None
    for line, row in enumerate(rows[1:], start=2):
        minute, rate = _parse_row(path, line, row)
        if first_minute is None:
            first_minute = minute
        expected = first_minute + len(rates)
        if minute != expected:
            raise BadInputError(
                f"trace {str(path)!r}, line {line}: expected minute {expected}, got {minute}; every minute needs a row"
            )
        rates.append(rate)
    if not rates:
        raise BadInputError(f"trace {str(path)!r} has no rows below its header")
    return np.array(rates)


def _parse_row(path: Path, line: int, row: list[str]) -> tuple[int, float]:
    try:
        minute_text, rate_text = row
        minute, rate = int(minute_text), float(rate_text)
    except ValueError:
        raise BadInputError(
            f"trace {str(path)!r}, line {line}: expected 'minute,rate', got {','.join(row)!r}"
        ) from None
    if not (math.isfinite(rate) and rate >= 0):
        raise BadInputError(f"trace {str(path)!r}, line {line}: the rate must not be negative, got {rate_text!r}")
    return minute, rate
