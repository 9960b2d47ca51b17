"""An operator's measured capacity at each parallelism, and when to discard it.

Plain JSON data in and out, so that it lives in a policy's memory, across load levels and restarts of the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any, Literal, Protocol

import numpy as np

from sluice.dataflow.provisioning import processing_abilities
from sluice.learning.gaussian_process import BadMatrixError, GaussianProcess, Vector
from sluice.learning.zero_mean_process import ZeroMeanProcess
from sluice.model import Learned, Observation
from sluice.model.learned import capacity_curve, curve_points

SAMPLES_PER_PARALLELISM = 12
"""Newest ones are kept: enough to average noise away, few enough that a slow drift is followed."""
CONTRADICTIONS_TO_FORGET = 2
"""A single window may be wrong (a pause, a burst of garbage collection); two in a row are believed."""

Process = Literal["capacity-law", "zero-mean"]
"""Capacity law: ours, with a power law as its mean and learned noise. Zero mean: that of ContTune's authors."""


class Surrogate(Protocol):
    """Expected capacity by parallelism, and how sure it is."""

    def predict(self, x: Vector) -> tuple[Vector, Vector]: ...


@dataclass(frozen=True)
class History:
    """Samples of one operator: parallelism -> capacities in records/s, oldest first.

    A sample that differs from the median of its own parallelism by more than `tolerance` (relative) contradicts;
    the second contradiction in a row means that the code or the hardware changed: all earlier samples are discarded.
    """

    samples: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    doubts: tuple[tuple[int, float], ...] = ()
    forgotten: int = 0
    """How often earlier samples were discarded."""

    def add(self, parallelism: int, capacity: float, *, tolerance: float) -> History:
        """A tolerance of 0 keeps every sample for ever."""
        known = self.samples.get(parallelism, ())
        if tolerance and known and abs(capacity - median(known)) > tolerance * median(known):
            doubts = (*self.doubts, (parallelism, capacity))
            if len(doubts) < CONTRADICTIONS_TO_FORGET:
                return replace(self, doubts=doubts)
            return replace(History._of(doubts), forgotten=self.forgotten + 1)
        # where nothing is known nothing can be contradicted, and nothing confirmed either
        return replace(self, samples=self._with(parallelism, capacity), doubts=() if known else self.doubts)

    def _with(self, parallelism: int, capacity: float) -> Mapping[int, tuple[float, ...]]:
        kept = (*self.samples.get(parallelism, ()), capacity)[-SAMPLES_PER_PARALLELISM:]
        return {**self.samples, parallelism: kept}

    @staticmethod
    def _of(samples: Iterable[tuple[int, float]]) -> History:
        fresh = History()
        for parallelism, capacity in samples:
            fresh = History(fresh._with(parallelism, capacity))
        return fresh

    @property
    def in_doubt(self) -> bool:
        """The last sample contradicted the others; the next one decides."""
        return bool(self.doubts)

    @property
    def largest(self) -> int:
        return max(self.samples, default=0)

    def capacity(self, parallelism: int) -> float | None:
        """Mean of what was measured at just this parallelism."""
        known = self.samples.get(parallelism)
        return fmean(known) if known else None

    def distance(self, parallelism: int) -> float:
        """To the nearest parallelism that was ever measured."""
        return min((abs(parallelism - seen) for seen in self.samples), default=float("inf"))

    def fit(self, reach: int = 0, process: Process = "capacity-law") -> Surrogate:
        if process == "zero-mean":
            seen = sorted(self.samples)
            return ZeroMeanProcess.fit(seen, [fmean(self.samples[one]) for one in seen])
        pairs = [(seen, value) for seen, values in sorted(self.samples.items()) for value in values]
        return GaussianProcess.fit([seen for seen, _ in pairs], [value for _, value in pairs], reach=reach)

    def to_data(self) -> dict[str, Any]:
        return {
            "samples": {str(seen): list(values) for seen, values in self.samples.items()},
            "doubts": [list(doubt) for doubt in self.doubts],
            "forgotten": self.forgotten,
        }

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> History:
        return History(
            {int(seen): tuple(values) for seen, values in data.get("samples", {}).items()},
            tuple((int(seen), float(value)) for seen, value in data.get("doubts", ())),
            int(data.get("forgotten", 0)),
        )


def read_histories(memory: Mapping[str, Any]) -> dict[str, History]:
    """All operators' histories from a policy's memory, where `write_histories` put them."""
    return {name: History.from_data(data) for name, data in memory.get("history", {}).items()}


def write_histories(histories: Mapping[str, History]) -> dict[str, Any]:
    return {name: history.to_data() for name, history in histories.items()}


def learned_capacities(memory: Mapping[str, Any], reach: int) -> Learned:
    """What the histories in a policy's memory say of 1 to `reach` instances, for people to look at."""
    points, curves = curve_points(reach), {}
    for name, history in read_histories(memory).items():
        if history.samples:
            try:
                mean, variance = history.fit(reach=reach).predict(np.array(points, dtype=float))
            except BadMatrixError:
                continue
            curves[name] = capacity_curve(points, mean.tolist(), (variance**0.5).tolist())
    return Learned(curves=curves)


def learn(
    observation: Observation, memory: Mapping[str, Any], *, tolerance: float
) -> tuple[dict[str, History], tuple[str, ...]]:
    """The histories in a policy's memory with this window's samples, and the operators that lost their earlier ones."""
    histories = read_histories(memory)
    forgot = []
    for name, ability in processing_abilities(observation).items():
        before = histories.get(name, History())
        histories[name] = before.add(observation.operators[name].parallelism, ability, tolerance=tolerance)
        if histories[name].forgotten > before.forgotten:
            forgot.append(name)
    return histories, tuple(forgot)
