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

WEAK = 0.75
"""More slack than this hardly ever takes anything away."""
FEW = 40
"""Operators that work in turn for which the cheapest shares of time are searched."""
LESS_BUSY = 0.93
MOST_ROUNDS = 200


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
        known = {line.name for line in self._lines}
        slack = model.blocking.slack
        self._slack = {name: share for name, share in slack.items() if share < WEAK and name in known}
        self._use = self._busy_shares() if self._slack else {}

    def carried(self, parallelism: Mapping[str, int]) -> float:
        """The load a configuration carries: that of its slowest operator; at its limit as it was seen."""
        model = self._model
        if model.at_limit is not None and parallelism == model.parallelism:
            return model.at_limit
        if not self._lines:
            return math.exp(300.0)
        heights = {line.name: _height(line, parallelism[line.name]) for line in self._lines}
        if self._slack:
            times = {name: math.exp(-height) for name, height in heights.items()}
            rate = 1 / longest_time(model.topology, times, self._slack)
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
        for line in self._lines:
            missing = wanted - line.height - math.log(self._use.get(line.name, 1.0))
            if missing <= 0:
                counts[line.name] = _whole(line.instances * math.exp(missing / line.below))
            elif line.grows:
                counts[line.name] = _whole(line.instances * math.exp(min(missing / line.above, 30.0)))
            else:
                counts[line.name] = line.instances
        return counts

    def _busy_shares(self) -> dict[str, float]:
        """How busy operators may be that work in turn: their share and the largest after them fit into their time."""
        use = {line.name: 1.0 for line in self._lines}
        if len(self._slack) > FEW:
            # two that need the same time get half of it each
            return use | {name: (1 + share) / 2 for name, share in self._slack.items()}
        # instances are dear where there are many: who has few becomes less busy first
        needs = {line.name: math.log(line.instances) - line.height / line.below for line in self._lines}
        most = max(needs.values())
        for _ in range(MOST_ROUNDS):
            after = busiest_after(self._model.topology, use)
            gains: dict[str, float] = {}
            for name, share in self._slack.items():
                other = after[name].name
                if other is not None and use[name] + use[other] > 1 + share:
                    for each in (name, other):
                        gain = use[each] ** 2 * math.exp(min(most - needs[each], 50.0))
                        gains[each] = gains.get(each, 0.0) + gain
            if not gains:
                break
            use[max(gains, key=gains.__getitem__)] *= LESS_BUSY
        return use


def _height(line: _Line, count: int) -> float:
    """The logarithm of the load that an operator carries with so many instances."""
    if count == line.instances:
        return line.height
    distance = math.log(count / line.instances)
    return line.height + distance * (line.above if distance > 0 else line.below)


def _whole(count: float) -> int:
    return max(1, min(MOST_INSTANCES, math.ceil(count * (1 - 1e-9))))
