"""Flink's option to spread out slots: the same number of tasks everywhere, whatever they weigh."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sluice.placement.answers import answer
from sluice.placement.base import Placed, PlacementRequest, placer
from sluice.placement.default import shuffled_tasks
from sluice.placement.problem import build
from sluice.registry import parameter


@placer("evenly")
@dataclass(frozen=True, kw_only=True)
class Evenly:
    """Every task, in random order, to the worker with the largest share of free slots (CAPSys 2.2)."""

    seed: int = parameter(0, "chooses the order of tasks; the same request and seed give the same plan")

    def place(self, request: PlacementRequest) -> Placed:
        started_s = time.perf_counter()
        problem = build(request)
        if not problem.fits:
            return Placed.no_room(request)
        slots = problem.arrays.slots
        counts = problem.arrays.pinned.copy()
        for layer in shuffled_tasks(problem, self.seed):
            counts[layer, int(((slots - counts.sum(axis=0)) / slots).argmax())] += 1
        return answer(problem, counts, started_s, f"tasks counted out evenly, order drawn with seed {self.seed}")
