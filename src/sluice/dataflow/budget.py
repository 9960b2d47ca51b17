"""Fit recommendations into a budget of slots so that no operator is left behind the others."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping


def within_budget(recommended: Mapping[str, int], budget: int, coverage: Callable[[str, int], float]) -> dict[str, int]:
    """The projection onto `sum x <= budget`, never above the recommendation, at least 1 each.

    `coverage(name, x)` is the share of its target that an operator reaches with x instances. Slot by slot, the
    operator that covers least gets the next one: the flow through a job is that of its worst covered operator, so
    this maximises it. (The nearest point of the set, Dragster's projection, may starve just that operator.)
    """
    if sum(recommended.values()) <= budget:
        return dict(recommended)
    given = dict.fromkeys(recommended, 1)
    left = budget - len(given)
    queue = [(coverage(name, 1), name) for name in recommended if recommended[name] > 1]
    heapq.heapify(queue)
    while left > 0 and queue:
        _, name = heapq.heappop(queue)
        given[name] += 1
        left -= 1
        if given[name] < recommended[name]:
            heapq.heappush(queue, (coverage(name, given[name]), name))
    return given
