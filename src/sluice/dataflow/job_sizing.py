"""Configurations for a load, and the load of a configuration, by cautious capacity curves.

A plan asks for some ten configurations of all operators, so each curve's cautious line is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sluice.dataflow.blocking import busiest_after, longest_time
from sluice.dataflow.capacity_curve import PRIOR_SLOPE, USELESS_SLOPE
from sluice.dataflow.job_limit import is_within
from sluice.dataflow.job_model import JobModel
from sluice.dataflow.numbers import MOST_INSTANCES

WEAK = 0.75
"""More slack than this hardly ever takes anything away."""
MOST_HEIGHT = 300.0
"""Logarithm of a load beyond all loads, whose square is a number still."""
FEW = 30
"""Operators that work in turn for which the cheapest way to get them by is searched."""
MANY = 100
MOST_RAISES = 100
LEAST_SEARCHED, SEARCH_STEPS = 0.01, 9
"""Between this part of a load and the load, what the slots there are carry is found to one per cent."""
ROUNDED = 1 - 1e-9
"""A billionth of slack: 10 * 1.1 stays 11."""


class _Line(NamedTuple):
    """Per record/s of the job's load: `log rate = height + slope * log(p / instances)`."""

    name: str
    instances: int
    height: float
    below: float
    above: float
    grows: bool


class JobSizing:
    """`caution` is in standard deviations; operators of unknown input or capacity keep their instances.

    One of which only a lower bound is known gets no more than it has, and limits the job only with fewer, unless
    `believes_bounds`: then the bound is its capacity.
    """

    def __init__(self, model: JobModel, caution: float, *, believes_bounds: bool = True) -> None:
        self._model = model
        self._bounds: list[_Line] = []
        self._lines: list[_Line] = []
        self._deciding: list[_Line] = []
        most = math.inf
        trust = math.log(model.trust)
        for name, each in model.inputs.items():
            if each <= 0:
                continue
            curve = model.curves[name]
            height, below, above = curve.cautious(caution)
            scale = trust - math.log(each)
            is_bound = curve.is_bound and not believes_bounds
            is_limited = curve.is_limited
            grows = not is_limited and not is_bound
            # doubt makes an operator slow to grow, and only evidence makes it useless to try
            above = above if above > USELESS_SLOPE else USELESS_SLOPE
            # where the plateau of a limited operator ends is not known: below it instances may add up again
            least = PRIOR_SLOPE if is_limited else USELESS_SLOPE
            line = _Line(name, curve.instances, height + scale, below if below > least else least, above, grows)
            self._lines.append(line)
            if is_bound:
                self._bounds.append(line)
                continue
            if not grows and not model.holds_up(name):
                # its backlog is its own, and more instances do not shorten it: the others need not be as slow
                continue
            self._deciding.append(line)
            if not grows:
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

    def limit(self, most_slots: int | None, load: float) -> None:
        """Where the slots there are do not do for this load, find what they do for: no more is within reach."""
        if most_slots is None or sum(self.sized(load).values()) <= most_slots:
            return
        fits, short = load * LEAST_SEARCHED, load
        for _ in range(SEARCH_STEPS):
            middle = math.sqrt(fits * short)
            if sum(self.sized(middle).values()) <= most_slots:
                fits = middle
            else:
                short = middle
        self.most = min(self.most, fits)

    def carried(self, parallelism: Mapping[str, int], *, sized_for: float | None = None) -> float:
        """The load a configuration carries: that of its slowest operator; at its limit as it was seen.

        The slowest of many operators carries hardly more than the load they were all sized for, where that is given.
        """
        model = self._model
        if model.at_limit is not None and parallelism == model.parallelism:
            return model.at_limit
        deciding = self._deciding
        if self._bounds:
            deciding = deciding + [line for line in self._bounds if parallelism[line.name] < line.instances]
        if not deciding:
            return math.exp(MOST_HEIGHT)
        if sized_for is not None and len(deciding) >= MANY:
            rate = min(sized_for, self.most)
        else:
            rate = self._slowest(deciding, parallelism)
        for seen, counts in model.limits:
            if is_within(parallelism, counts) if seen < rate else is_within(counts, parallelism):
                rate = seen
        return rate

    def _slowest(self, lines: Sequence[_Line], parallelism: Mapping[str, int]) -> float:
        heights = _heights(lines, parallelism)
        if not self._slack:
            return math.exp(min(heights))
        times = {line.name: math.exp(-height) for line, height in zip(lines, heights, strict=True)}
        return 1 / longest_time(self._model.topology, times, self._slack)

    def sized(self, load: float) -> dict[str, int]:
        """The fewest instances of every operator that carry a load."""
        counts = {**self._model.parallelism, **self._idle}
        load = max(min(load, self.most), 1e-12)
        wanted = math.log(load)
        turns = self._turns
        exp, ceil = math.exp, math.ceil
        # some ten configurations of all operators per decision, so nothing is called here that need not be
        for name, instances, height, below, above, grows in self._lines:
            missing = wanted - height
            if turns and name in turns:
                missing -= turns[name]
            if missing <= 0:
                counts[name] = ceil(instances * exp(missing / below) * ROUNDED) or 1
            elif grows:
                exponent = missing / above
                count = instances * exp(exponent) if exponent < 30.0 else MOST_INSTANCES
                counts[name] = ceil(count * ROUNDED) if count < MOST_INSTANCES else MOST_INSTANCES
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


def _heights(lines: Sequence[_Line], parallelism: Mapping[str, int]) -> list[float]:
    """Logarithms of the loads that operators carry with so many instances."""
    log = math.log
    heights = [
        height
        if (count := parallelism[name]) == instances
        else height + log(count / instances) * (above if count > instances else below)
        for name, instances, height, below, above, _ in lines
    ]
    if min(heights) > -MOST_HEIGHT and max(heights) < MOST_HEIGHT:
        return heights
    return [math.copysign(min(abs(height), MOST_HEIGHT), height) for height in heights]


def _height(line: _Line, count: int) -> float:
    return _heights((line,), {line.name: count})[0]


def _whole(count: float) -> int:
    if count >= MOST_INSTANCES:
        return MOST_INSTANCES
    return math.ceil(count * ROUNDED) or 1
