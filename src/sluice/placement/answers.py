"""From task counts to the answer of a strategy."""

from __future__ import annotations

import time

import numpy as np

from sluice.placement.base import Costs, Placed
from sluice.placement.problem import DIMENSIONS, Counts, Floats, Problem


def as_costs(values: Floats) -> Costs:
    """Costs above 1 cannot be: an unlimited threshold is said as 1."""
    cpu, io, net = (float(min(value, 1.0)) for value in values)
    return Costs(cpu=cpu, io=io, net=net)


def in_words(costs: Floats) -> str:
    return " ".join(f"{name} {min(value, 1.0):.3f}" for name, value in zip(DIMENSIONS, costs, strict=True))


def moved_tasks(before: Counts, after: Counts) -> int:
    """Tasks that leave their worker; tasks that appear or go because an operator is scaled are not counted."""
    survivors = np.minimum(before.sum(axis=1), after.sum(axis=1))
    return int(survivors.sum() - np.minimum(before, after).sum())


def answer(
    problem: Problem,
    counts: Counts,
    started_s: float,
    how: str,
    *,
    limits: Floats | None = None,
    explored: int = 0,
    gap: float | None = None,
) -> Placed:
    """`how` ends the sentence that begins with what is placed where and what it costs."""
    costs, moved = problem.costs(counts), None
    if problem.request.present is not None:
        moved = moved_tasks(problem.counts_of(problem.request.present), counts)
        how = f"{how}, moving {moved} of {problem.request.tasks} tasks"
    return Placed(
        placement=problem.placement_of(counts),
        costs=as_costs(costs),
        thresholds=None if limits is None else as_costs(limits),
        explored=explored,
        elapsed_s=time.perf_counter() - started_s,
        gap=gap,
        moved=moved,
        reason=f"{problem.request.tasks} tasks on {len(problem.workers)} workers cost {in_words(costs)}; {how}",
    )
