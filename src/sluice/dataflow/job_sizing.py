"""Configurations for a load, and the load of a configuration, by cautious capacity curves.

A plan asks for some ten configurations of all operators, so each curve's cautious line is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from sluice.dataflow.blocking import busiest_after, longest_time
from sluice.dataflow.capacity_curve import USELESS_SLOPE
from sluice.dataflow.job_model import JobModel, is_within
from sluice.dataflow.numbers import MOST_INSTANCES

MOST_RAISES = 200


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
        if not self._lines:
            return math.exp(300.0)
        heights = {line.name: _height(line, parallelism[line.name]) for line in self._lines}
        if model.blocking.slack:
            times = {name: math.exp(-height) for name, height in heights.items()}
            rate = 1 / longest_time(model.topology, times, model.blocking.slack)
        else:
            rate = math.exp(min(heights.values()))
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
        return self._unblocked(counts, math.exp(-wanted)) if self._model.blocking.slack else counts

    def _unblocked(self, counts: dict[str, int], time: float) -> dict[str, int]:
        """With as many more instances as it takes that nobody waits for others for too long.

        Whoever is short of time, and the busiest one after it, can grow: the one that brings most does, a little.
        """
        slack, topology = self._model.blocking.slack, self._model.topology
        lines = {line.name: line for line in self._lines}
        times = {name: math.exp(-_height(line, counts[name])) for name, line in lines.items()}
        for _ in range(MOST_RAISES):
            after = busiest_after(topology, times)
            gains: dict[str, float] = {}
            for name, share in slack.items():
                if name in times and times[name] + after[name].time > (1 + share) * time * (1 + 1e-9):
                    for other in (name, after[name].name):
                        if other is not None and lines[other].grows:
                            gain = times[other] - math.exp(-_height(lines[other], counts[other] + 1))
                            gains[other] = gains.get(other, 0.0) + gain
            if not gains:
                break
            best = max(gains, key=gains.__getitem__)
            counts[best] += max(1, counts[best] // 10)
            times[best] = math.exp(-_height(lines[best], counts[best]))
        return counts


def _height(line: _Line, count: int) -> float:
    """The logarithm of the load that an operator carries with so many instances."""
    if count == line.instances:
        return line.height
    distance = math.log(count / line.instances)
    return line.height + distance * (line.above if distance > 0 else line.below)


def _whole(count: float) -> int:
    return max(1, min(MOST_INSTANCES, math.ceil(count * (1 - 1e-9))))
