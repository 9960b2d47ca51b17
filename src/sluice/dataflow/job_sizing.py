"""Configurations for a load, and the load of a configuration, by cautious capacity curves.

A plan asks for some ten configurations of all operators, so each curve's cautious line is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from sluice.dataflow.blocking import busiest_after, longest_time
from sluice.dataflow.capacity_curve import PRIOR_SLOPE, USELESS_SLOPE
from sluice.dataflow.job_model import JobModel, is_within
from sluice.dataflow.numbers import MOST_INSTANCES

WEAK = 0.75
"""More slack than this hardly ever takes anything away."""
MOST_HEIGHT = 300.0
"""Logarithm of a load beyond all loads, whose square is a number still."""
FEW = 30
"""Operators that work in turn for which the cheapest way to get them by is searched."""
MOST_RAISES = 100


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
        self._deciding: list[_Line] = []
        most = math.inf
        trust = math.log(model.trust)
        for name, each in model.inputs.items():
            if each <= 0:
                continue
            curve = model.curves[name]
            below, above = curve.slopes(caution)
            scale = trust - math.log(each)
            height = curve.height(caution) + scale
            # doubt makes an operator slow to grow, and only evidence makes it useless to try
            grows, above = not curve.is_limited, max(above, USELESS_SLOPE)
            # where the plateau of a limited operator ends is not known: below it instances may add up again
            below = max(below, PRIOR_SLOPE if curve.is_limited else USELESS_SLOPE)
            line = _Line(name, curve.instances, height, below, above, grows)
            self._lines.append(line)
            if not grows and not model.holds_up(name):
                # its backlog is its own, and more instances do not shorten it: the others need not be as slow
                continue
            self._deciding.append(line)
            if curve.is_limited:
                most = min(most, math.exp(min(MOST_HEIGHT, curve.anchor + scale)))
        self.most = most
        """The load beyond which more instances do not help."""
        self._idle = {name: 1 for name, each in model.inputs.items() if each <= 0}
        known = {line.name for line in self._lines}
        slack = model.blocking.slack
        self._slack = {name: share for name, share in slack.items() if share < WEAK and name in known}
        # of two that work in turn each gets half the time, where there are too many to search
        many = len(self._slack) > FEW
        self._turns = {name: math.log((1 + share) / 2) for name, share in self._slack.items()} if many else {}

    def carried(self, parallelism: Mapping[str, int]) -> float:
        """The load a configuration carries: that of its slowest operator; at its limit as it was seen."""
        model = self._model
        if model.at_limit is not None and parallelism == model.parallelism:
            return model.at_limit
        if not self._deciding:
            return math.exp(MOST_HEIGHT)
        if self._slack:
            exp = math.exp
            times = {line[0]: exp(-_height(line, parallelism[line[0]])) for line in self._deciding}
            rate = 1 / longest_time(model.topology, times, self._slack)
        else:
            rate = math.exp(min(_height(line, parallelism[line[0]]) for line in self._deciding))
        for seen, counts in model.limits:
            if is_within(parallelism, counts) if seen < rate else is_within(counts, parallelism):
                rate = seen
        return rate

    def sized(self, load: float) -> dict[str, int]:
        """The fewest instances of every operator that carry a load."""
        counts = {**self._model.parallelism, **self._idle}
        load = max(min(load, self.most), 1e-12)
        wanted = math.log(load)
        turns = self._turns
        for name, instances, height, below, above, grows in self._lines:
            missing = wanted - height
            if name in turns:
                missing -= turns[name]
            if grows or missing <= 0:
                exponent = missing / (below if missing <= 0 else above)
                counts[name] = _whole(instances * math.exp(exponent if exponent < 30.0 else 30.0))
            else:
                counts[name] = instances
        return self._raised(counts, 1 / load) if self._slack and not turns else counts

    def _raised(self, counts: dict[str, int], time: float) -> dict[str, int]:
        """With as many more instances as operators that work in turn need to get by with their time.

        Whoever is short of time, or the busiest one after it, grows a little: the one that brings most.
        """
        lines = {line.name: line for line in self._lines}
        times = {name: math.exp(-_height(line, counts[name])) for name, line in lines.items()}
        for _ in range(MOST_RAISES):
            after = busiest_after(self._model.topology, times)
            gains: dict[str, float] = {}
            for name, share in self._slack.items():
                if times[name] + after[name].time > (1 + share) * time * (1 + 1e-9):
                    for each in (name, after[name].name):
                        if each is not None and lines[each].grows:
                            gain = times[each] - math.exp(-_height(lines[each], counts[each] + 1))
                            gains[each] = gains.get(each, 0.0) + gain
            if not gains:
                break
            best = max(gains, key=gains.__getitem__)
            counts[best] = _whole(counts[best] + max(1, counts[best] // 10))
            times[best] = math.exp(-_height(lines[best], counts[best]))
        return counts


def _height(line: _Line, count: int) -> float:
    """The logarithm of the load that an operator carries with so many instances."""
    _, instances, height, below, above, _ = line
    if count != instances:
        height += math.log(count / instances) * (above if count > instances else below)
    if -MOST_HEIGHT < height < MOST_HEIGHT:
        return height
    return math.copysign(MOST_HEIGHT, height)


def _whole(count: float) -> int:
    if count >= MOST_INSTANCES:
        return MOST_INSTANCES
    return math.ceil(count * (1 - 1e-9)) or 1
