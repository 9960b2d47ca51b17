"""What Flink does by default: fill one worker after the other with tasks in no particular order."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from sluice.placement.answers import answer
from sluice.placement.base import Placed, PlacementRequest, placer
from sluice.placement.problem import Counts, Problem, build
from sluice.registry import parameter


@placer("default")
@dataclass(frozen=True, kw_only=True)
class Default:
    """Fill a worker before the next is used, tasks drawn at random (CAPSys 2.2)."""

    seed: int = parameter(0, "chooses the order of tasks; the same request and seed give the same plan")

    def place(self, request: PlacementRequest) -> Placed:
        started_s = time.perf_counter()
        problem = build(request)
        if not problem.fits:
            return Placed.no_room(request)
        counts = problem.arrays.pinned.copy()
        names = [worker.name for worker in request.cluster.workers]
        order = sorted(range(len(names)), key=lambda at: names.index(problem.workers[at].name))
        tasks = iter(shuffled_tasks(problem, self.seed))
        for worker in order:
            for _ in range(int(problem.arrays.slots[worker] - counts[:, worker].sum())):
                if (layer := next(tasks, None)) is not None:
                    counts[layer, worker] += 1
        return answer(problem, counts, started_s, f"workers filled one by one, order drawn with seed {self.seed}")


def shuffled_tasks(problem: Problem, seed: int) -> list[int]:
    """The layer of every task that is not pinned, in a random order that depends on the seed and the parallelism."""
    layers: Counts = np.repeat(
        np.arange(len(problem.arrays.tasks)), problem.arrays.tasks - problem.arrays.pinned.sum(axis=1)
    )
    chance = np.random.default_rng([seed, *problem.request.parallelism.values()])
    return [int(layer) for layer in chance.permutation(layers)]
