"""What a workload is: one load per minute; and the registry of workloads.

A pattern's load is a share of the pipeline's peak rate, so one pattern fits every query. A trace from a file is in
records/s unless it is scaled to a share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sluice.registry import Registry

MINUTE_S = 60.0
MOST_MINUTES = 1_000_000
"""About two years."""
MOST_LOAD = 10.0
"""A larger share of the peak rate is no share but, by mistake, a rate in records/s."""

Floats = npt.NDArray[np.float64]


class Workload(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the parameters."""

    @property
    def absolute(self) -> bool:
        """Whether `loads` are records/s rather than shares of a peak rate."""
        ...

    def loads(self, random: np.random.Generator) -> Floats:
        """One load per minute; the length is the workload's own duration."""
        ...


workloads: Registry[Workload] = Registry("workload", "sluice.lab.workloads", extra="lab")
workload = workloads.register


def rate_curve(workload: Workload, *, peak_rate: float, seed: int, speedup: float = 1.0) -> RateCurve:
    """Times -> records/s: every minute's load holds for that minute, the last one for ever after."""
    if not speedup > 0:
        raise ValueError(f"speedup must be above 0, got {speedup}")
    per_minute = workload.loads(np.random.Generator(np.random.PCG64(seed)))
    rates = per_minute if workload.absolute else per_minute * peak_rate

    def curve(times_s: Floats) -> Floats:
        minutes = (times_s * speedup / MINUTE_S).astype(np.int64)
        return rates[np.clip(minutes, 0, rates.size - 1)]

    return curve


def duration_s(workload: Workload) -> float:
    """How long the pattern is, in its own time."""
    return workload.loads(np.random.Generator(np.random.PCG64(0))).size * MINUTE_S


RateCurve = Callable[[Floats], Floats]


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def require_load(name: str, value: float) -> None:
    """The message says what a load is, for those who gave a rate."""
    require(
        0 <= value <= MOST_LOAD,
        f"{name} is a share of the pipeline's peak rate and must be between 0 and {MOST_LOAD:g}, got {value:g}",
    )
