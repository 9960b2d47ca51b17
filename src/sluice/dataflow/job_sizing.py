"""Configurations for a load, and the load of a configuration, by cautious capacity curves.

A plan asks for some ten configurations of all operators, so each curve's cautious line is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from sluice.dataflow.capacity_curve import USELESS_SLOPE
from sluice.dataflow.job_model import JobModel, is_within
from sluice.dataflow.numbers import MOST_INSTANCES


class _Line(NamedTuple):
    """Per record/s of the job's load: `log rate = height + slope * log(p / instances)`."""

    name: str
    instances: int
    height: float
    below: float
    above: float
    grows: bool


class JobSizing:
    """`caution` is in standard deviations; operators of unknown input or capacity keep their instances."""

    def __init__(self, model: JobModel, caution: float) -> None:
        self._model = model
        self._lines: list[_Line] = []
        most = math.inf
        trust = math.log(model.trust)
        for name, each in model.inputs.items():
            if each <= 0:
                continue
            curve = model.curves[name]
            below, above = curve.slopes(caution)
            scale = trust - math.log(each)
            height = curve.height(caution) + scale
            grows = above >= USELESS_SLOPE and not curve.is_limited
            self._lines.append(_Line(name, curve.instances, height, max(below, USELESS_SLOPE), above, grows))
            if curve.is_limited:
                most = min(most, math.exp(min(300.0, curve.anchor + scale)))
        self.most = most
        """The load beyond which more instances do not help."""
        self._idle = {name: 1 for name, each in model.inputs.items() if each <= 0}

    def carried(self, parallelism: Mapping[str, int]) -> float:
        """The load a configuration carries: that of its slowest operator; at its limit as it was seen."""
        model = self._model
        if model.at_limit is not None and parallelism == model.parallelism:
            return model.at_limit
        least = 300.0
        for name, instances, height, below, above, _ in self._lines:
            count = parallelism[name]
            if count != instances:
                distance = math.log(count / instances)
                height += distance * (above if distance > 0 else below)
            if height < least:
                least = height
        rate = math.exp(least)
        for seen, counts in model.limits:
            if seen < rate and is_within(parallelism, counts):
                rate = seen
        return rate

    def sized(self, load: float) -> dict[str, int]:
        """The fewest instances of every operator that carry a load."""
        counts = {**self._model.parallelism, **self._idle}
        wanted = math.log(max(min(load, self.most), 1e-12))
        for name, instances, height, below, above, grows in self._lines:
            missing = wanted - height
            if missing > 0:
                counts[name] = _whole(instances * math.exp(min(missing / above, 30.0))) if grows else instances
            else:
                counts[name] = _whole(instances * math.exp(missing / below))
        return counts


def _whole(count: float) -> int:
    return max(1, min(MOST_INSTANCES, math.ceil(count * (1 - 1e-9))))
