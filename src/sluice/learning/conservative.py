"""Conservative Bayesian optimisation (ContTune section 5): one operator, one real input rate, one parallelism.

Fast exploitation where something similar was measured, the linear method's recommendation where it was not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sluice.dataflow.numbers import number
from sluice.learning.gaussian_process import BadMatrixError, Vector
from sluice.learning.history import History, Process

Acquisition = Literal["feasible-mean", "expected-improvement"]
MOST_CANDIDATES = 2000
SMALLEST_IMPROVEMENT = 0.1
"""Expected instances saved, below which constrained expected improvement stops trying: its value never reaches 0."""


@dataclass(frozen=True)
class ParallelismChoice:
    """A parallelism and where it comes from."""

    parallelism: int
    why: str


def choose(
    history: History,
    input_rate: float,
    linear: int | None,
    *,
    alpha: int,
    acquisition: Acquisition,
    p_max: int,
    process: Process = "capacity-law",
) -> ParallelismChoice | None:
    """Algorithm 2 for one operator; null if neither history nor the linear method knows anything."""
    try:
        learned = (
            acquire(history, input_rate, acquisition=acquisition, p_max=p_max, process=process)
            if history.samples
            else None
        )
    except BadMatrixError:
        learned = None
    if learned is not None and history.distance(learned) <= alpha:
        return ParallelismChoice(learned, f"{learned} by history for {number(input_rate)} rec/s")
    if linear is not None:
        near = "no parallelism seen suffices" if learned is None else f"{learned} is more than {alpha} from any seen"
        return ParallelismChoice(linear, f"{linear} by linear scaling for {number(input_rate)} rec/s ({near})")
    return None


def acquire(
    history: History,
    input_rate: float,
    *,
    acquisition: Acquisition,
    p_max: int,
    process: Process = "capacity-law",
) -> int | None:
    """The parallelism that maximises the acquisition function in 1..p_max; null if none looks feasible."""
    reach = min(max(p_max, history.largest), MOST_CANDIDATES)
    candidates = np.arange(1, reach + 2, dtype=float)
    mean, variance = history.fit(reach=reach, process=process).predict(candidates)
    for seen in (seen for seen in history.samples if seen <= reach):
        mean[seen - 1] = history.capacity(seen)
        variance[seen - 1] = 0.0
    smallest = smallest_feasible(mean, input_rate, reach)
    if acquisition == "feasible-mean":
        return smallest
    measured = [seen for seen in history.samples if seen <= reach and (history.capacity(seen) or 0.0) >= input_rate]
    best = min(measured, default=reach if smallest is None else smallest)
    deviation = np.sqrt(np.maximum(variance[:best], 1e-12 * max(input_rate, 1.0) ** 2))
    value = (best - candidates[:best]) * normal_cdf((mean[:best] - input_rate) / deviation)
    if value.max() >= SMALLEST_IMPROVEMENT:
        return int(np.argmax(value)) + 1
    return best if measured or smallest is not None else None


def smallest_feasible(mean: Vector, input_rate: float, p_max: int) -> int | None:
    """Equation 5: the smallest p with `mean(p) >= input_rate`, whose neighbour above is feasible, too.

    A fitted mean is not monotone; a lone spike is more likely a wiggle of the fit than an operator that gets slower
    with one more instance.
    """
    for p in range(1, p_max + 1):
        if mean[p - 1] >= input_rate and (p == p_max or mean[p] >= input_rate):
            return p
    return None


def normal_cdf(z: Vector) -> Vector:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in z.tolist()])
