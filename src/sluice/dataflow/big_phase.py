"""ContTune's Big phase (section 4.2): stop falling behind first, whatever it costs for the moment."""

from __future__ import annotations

from collections.abc import Mapping


def raise_all(now: Mapping[str, int], p_max: int, most: int) -> dict[str, int]:
    """All operators to the largest parallelism in the job's history; if all are there already, to twice that."""
    largest = max(p_max, *now.values())
    if all(count == largest for count in now.values()):
        largest *= 2
    return dict.fromkeys(now, min(largest, most))
