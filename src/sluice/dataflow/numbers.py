"""Arithmetic and wording that policies share: safe ratios, whole instances, numbers for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

LARGEST = 1e15
"""Rates and ratios are cut off here, so that odd input gives a large recommendation and never an infinite one."""

MOST_INSTANCES = 1_000_000


def ratio(part: float | None, whole: float | None) -> float | None:
    """`part / whole`; null if either is unknown or there is nothing to divide by."""
    if part is None or whole is None or whole <= 0:
        return None
    quotient = part / whole
    return quotient if quotient < LARGEST else LARGEST


def whole_instances(count: float) -> int:
    """Round up, at least 1. A billionth of slack keeps 10 * 1.1 = 11.000000000000002 at 11."""
    if count >= MOST_INSTANCES:
        return MOST_INSTANCES
    return max(1, math.ceil(count * (1 - 1e-9)))


def whole_instances_down(count: float) -> int:
    """Round down, at least 1, with the same slack."""
    return max(1, math.floor(min(count, MOST_INSTANCES) * (1 + 1e-9)))


def known_sum(values: Iterable[float | None]) -> float | None:
    """The sum, null if one of the values is."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return min(total, LARGEST)


def number(value: float) -> str:
    """1234567.8 -> '1,234,568', 0.8333 -> '0.833'."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def listing(phrases: Iterable[str], limit: int = 4, *, of: int | None = None) -> str:
    """The first few and how many more there are: a reason stays one sentence on a job of 500 operators.

    With their number given (`of`), phrases that are not shown are never built.
    """
    if of is None:
        phrases = list(phrases)
        of = len(phrases)
    shown = "; ".join(islice(phrases, limit))
    return shown + (f"; and {of - limit} more" if of > limit else "")
