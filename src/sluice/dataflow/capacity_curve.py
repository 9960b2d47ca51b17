"""What an operator can take in with p instances, as a distribution that every window sharpens.

In logarithms the curve is a straight line through the *anchor*, which is the mean of what was measured at one
parallelism: `log capacity(p) = anchor + slope * log(p / p_anchor)`. The slope is 1 for instances that add up and 0
where more of them do not help; it is learned whenever the parallelism changes, a Kalman filter on one number. So the
curve is monotone, and concave where the data say so. Away from the anchor the doubt about the slope counts against the
operator in both directions: upwards it may be flatter, downwards steeper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

PRIOR_SLOPE, PRIOR_VARIANCE = 0.93, 0.01
NOISE = 0.04
"""Standard deviation of the logarithm of a window's measurement."""
BIAS = 0.06
"""That of what fewer instances carry at their limit over what more of them promised, which were never seen at theirs:
a step of one instance back tells little of the slope."""
MOST_WINDOWS = 6.0
"""So many windows count in the anchor; older ones fade."""
BOUND_WINDOWS = 0.5
"""What a lower bound counts, less than any measurement."""
CONTRADICTION = 0.25
"""Two measurements in a row that differ by so much from the anchor end it."""
LEAST_SLOPE, MOST_SLOPE = 0.0, 1.1
USELESS_SLOPE = 0.25
"""Below this, doubling the instances brings less than a fifth: more of them do not help."""
SURPRISE = 2.0
"""What a window at the limit shows is at most so many standard deviations off: beyond that the slope was not known."""
FORGETTING = 0.001
"""Added to the slope's variance with every change: a curve may bend."""


class CapacityCurve(NamedTuple):
    """`base_` is what was known before the last change of parallelism, so that its effect is counted once."""

    instances: int
    anchor: float
    windows: float = 1.0
    slope: float = PRIOR_SLOPE
    variance: float = PRIOR_VARIANCE
    base_instances: int = 0
    base_anchor: float = 0.0
    base_windows: float = 0.0
    base_slope: float = PRIOR_SLOPE
    base_variance: float = PRIOR_VARIANCE
    contradicted: bool = False

    @staticmethod
    def of(instances: int, rate: float) -> CapacityCurve:
        return CapacityCurve(instances, math.log(rate))

    @staticmethod
    def at_least(instances: int, rate: float) -> CapacityCurve:
        """Of an operator that has not been seen at work for long enough to tell."""
        return CapacityCurve(instances, math.log(rate), BOUND_WINDOWS)

    @property
    def is_bound(self) -> bool:
        """Whether nothing is known but what it does at least."""
        return self.windows < 1.0

    def learned(
        self, instances: int, rate: float, weight: float, *, bends: bool, at_limit: bool = False
    ) -> CapacityCurve:
        """With one more measurement; without `bends` the slope stays what it was."""
        measured = math.log(rate)
        if instances != self.instances:
            expected = self._moved_to(instances)
            return expected._fitted(measured, 1.0, at_limit) if bends else expected._replace(anchor=measured)
        if abs(measured - self.anchor) > CONTRADICTION:
            if not self.contradicted:
                return CapacityCurve(*self[:10], True)
            variance = max(self.variance, PRIOR_VARIANCE)
            return CapacityCurve(instances, measured, 1.0, self.slope, variance, *self[5:7], 0.0, *self[8:10])
        windows = min(self.windows + weight, MOST_WINDOWS)
        anchor = self.anchor + weight / windows * (measured - self.anchor)
        return self._fitted(anchor, windows, at_limit) if bends else self._replace(anchor=anchor, windows=windows)

    def _moved_to(self, instances: int) -> CapacityCurve:
        """The parallelism changed: what is known so far becomes the base."""
        return self._replace(
            instances=instances,
            windows=1.0,
            base_instances=self.instances,
            base_anchor=self.anchor,
            base_windows=self.windows,
            base_slope=self.slope,
            base_variance=min(self.variance + FORGETTING, PRIOR_VARIANCE),
            contradicted=False,
        )

    def _fitted(self, anchor: float, windows: float, at_limit: bool) -> CapacityCurve:
        """The slope between the base and here, weighed against what was known before.

        A curve may bend at once, where a system behind it is full: what it carries at its limit is no matter of noise,
        so a slope that it contradicts was less certain than it seemed.
        """
        distance = math.log(self.instances / self.base_instances) if self.base_instances else 0.0
        slope, variance, before = self.slope, self.variance, self.base_variance
        if distance and self.base_windows:
            off = (anchor - self.base_anchor) / distance - self.base_slope
            bias = BIAS if at_limit and distance < 0 else 0.0
            doubt = (NOISE**2 * (1 / self.base_windows + 1 / windows) + bias**2) / distance**2
            if at_limit:
                before = max(before, (off / SURPRISE) ** 2 - doubt)
            gain = before / (before + doubt)
            slope = min(MOST_SLOPE, max(LEAST_SLOPE, self.base_slope + gain * off))
            variance = (1 - gain) * before
        # of all operators in every window, so not by `_replace`, which takes four times as long
        return CapacityCurve(self.instances, anchor, windows, slope, variance, *self[5:9], before)

    def cautious(self, caution: float) -> tuple[float, float, float]:
        """The logarithm of the rate at the anchor and the slopes below and above it, with so many standard deviations
        of doubt against the operator."""
        doubt = caution * math.sqrt(self.variance)
        height = self.anchor - caution * NOISE / math.sqrt(self.windows)
        return height, self.slope + doubt, self.slope - doubt

    @property
    def is_limited(self) -> bool:
        """More instances do not help: something else sets the pace, a hot key or a system outside the job."""
        return self.slope < USELESS_SLOPE and self.variance < PRIOR_VARIANCE

    def rate(self, instances: int, caution: float = 0.0) -> float:
        """Records/s with so many instances, `caution` standard deviations below the mean."""
        if not caution and instances == self.instances:
            return math.exp(min(300.0, self.anchor))
        height, below, above = self.cautious(caution)
        distance = math.log(instances / self.instances)
        return math.exp(min(300.0, height + distance * (above if distance > 0 else below)))

    def to_list(self) -> list[float]:
        return list(self)

    @staticmethod
    def from_list(values: Sequence[float]) -> CapacityCurve:
        """JSON keeps whole numbers and truth values what they were."""
        return CapacityCurve._make(values)
