"""What load may come: paths of the next minutes, drawn from what followed in the past.

The past is cut into steps, counted back from now. The mean path is a damped trend, of which only the part is
believed that would have been right so far (a regression of what came on what the trend said; 0 on a random walk).
Around it lie the errors this forecast would have made from earlier moments, whole paths of them, those first that began
like now: so a load that has turned at this height before is expected to turn again, and the band is as wide as the
load is unpredictable. While there is little past, wide paths of no information stand in.

Whoever forecasts is checked: `Skill` compares what was said of the next window with what came, and with what the load
before it would have said. Paths that are much worse are not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

TREND_STEPS, LONG_TREND_STEPS = 4, 16
FIRST_TREND = TREND_STEPS + 2
"""So many moments are no trend: while the long look reaches no further back than the short one, starting is one."""
DAMPING = 0.93
MOST_PATHS = 10
LEAST_PATHS = 6
NEAR = 0.25
"""How far another load may be from the present one to be like it, in parts of what the load has ranged over."""
PRIOR_SPREAD = 0.25
"""Relative, over the whole horizon, while nothing is known."""
MISLED, MISLED_FOR_LONG = 2.0, 2.5
"""How much wider paths are after forecasts that were poor."""
LONG_POOR = 8
"""Windows in a row with poor forecasts from which on no jump explains them."""
BEYOND = 1.1
"""A jump seen from another height may not lead further than this beyond the largest load so far."""
PRIOR_WEIGHT = 4.0
"""So many past moments on which the trend was half right are taken for granted."""
STEADY = 0.2
SKILL_FADING = 0.9
LEAST_CHECKS = 2
WORSE = 2.0
UNAVOIDABLE = 0.05
"""A forecast may be wrong by this part of the usual load, and `WORSE` times as wrong as the load before."""


@dataclass(frozen=True)
class Skill:
    """Fading sums of what forecasts of the next window were wrong by, what the load before was, and of the loads."""

    forecast: float = 0.0
    before: float = 0.0
    load: float = 0.0
    checks: int = 0
    poor_windows: int = 0
    """In a row, the last one included."""

    @staticmethod
    def from_list(values: Sequence[Any]) -> Skill:
        return Skill(*values)

    def to_list(self) -> list[float]:
        return [self.forecast, self.before, self.load, self.checks, self.poor_windows]

    def checked(self, said: Sequence[float], loads: Sequence[float]) -> Skill:
        """With the last load: paths are scored as a distribution, so an honest band costs little (CRPS)."""
        came = loads[-1]
        wrong = math.fsum(abs(value - came) for value in said) / len(said)
        spread = math.fsum(abs(a - b) for a in said for b in said) / (2 * len(said) ** 2)
        now = Skill(
            SKILL_FADING * self.forecast + wrong - spread,
            SKILL_FADING * self.before + abs(came - loads[-2]),
            SKILL_FADING * self.load + math.fsum(loads) / len(loads),
            min(self.checks + 1, LEAST_CHECKS),
        )
        return replace(now, poor_windows=min(self.poor_windows + 1, LONG_POOR) if now.is_poor else 0)

    @property
    def is_poor(self) -> bool:
        return self.checks >= LEAST_CHECKS and self.forecast > WORSE * self.before + UNAVOIDABLE * self.load

    @property
    def is_poor_for_long(self) -> bool:
        return self.poor_windows >= LONG_POOR


def in_steps(loads: Sequence[float], windows_each: int) -> list[float]:
    """Means over so many windows, counted back from the last; what is left over at the front is dropped."""
    if windows_each == 1:
        return list(loads)
    first = len(loads) % windows_each
    return [math.fsum(loads[at : at + windows_each]) / windows_each for at in range(first, len(loads), windows_each)]


def after_jump(paths: list[list[float]], level: float, newest: float) -> list[list[float]]:
    """Paths that begin at what has just come, where that is no noise: the mean of a step has half of a jump."""
    jump = newest - level
    if abs(jump) <= STEADY * level:
        return paths
    return [[max(0.0, value + jump) for value in path] for path in paths]


def steady_windows(loads: Sequence[float]) -> int:
    """For how long the load has been about what it is now."""
    count = 0
    for load in reversed(loads):
        if abs(load - loads[-1]) > STEADY * loads[-1]:
            break
        count += 1
    return count


def outlook(past: Sequence[float], steps: int, *, trend: bool = True, band: bool = True) -> list[list[float]]:
    """Equally likely paths of the next `steps` values, none negative; with no `band`, the mean path alone."""
    now = past[-1]
    trend = trend and len(past) > FIRST_TREND
    slopes = _slopes(past) if trend else [0.0] * len(past)
    reach = [math.fsum(DAMPING**k for k in range(1, step + 1)) for step in range(1, steps + 1)]
    believed = _believed(past, slopes, reach) if trend else 0.0
    mean = [now + believed * slopes[-1] * far for far in reach]
    if not band:
        return [[max(0.0, value) for value in mean]]
    origins = _like_now(past, slopes, steps)
    largest = max(past)
    errors = [_errors(past, origin, believed * slopes[origin], reach) for origin in origins]
    if len(errors) < LEAST_PATHS:
        errors += _no_information(max(now, math.fsum(past) / len(past)), steps)
    highest = [BEYOND * max(largest, value) for value in mean]
    return [
        [min(most, max(0.0, value + error)) for value, error, most in zip(mean, path, highest, strict=True)]
        for path in errors
    ]


def unforeseen(now: float, steps: int, *, for_long: bool) -> list[list[float]]:
    """Paths around a load that stays as it is, wide; what misled forecasts for long is not counted on to fall."""
    errors = _no_information((MISLED_FOR_LONG if for_long else MISLED) * now, steps)
    lowest = now if for_long else 0.0
    return [[max(lowest, now + error) for error in path] for path in errors]


def _no_information(load: float, steps: int) -> list[list[float]]:
    roots = [PRIOR_SPREAD * load * math.sqrt(step / steps) for step in range(1, steps + 1)]
    return [[side * root for root in roots] for side in (-1.0, -0.4, 0.0, 0.4, 1.0)]


def _slopes(past: Sequence[float]) -> list[float]:
    """Change per step at every moment: what the last steps and the last four times as many agree on.

    A jump is no trend: just after it the long look says little, and soon the short one says nothing. From nothing to
    something is always a jump, and so is the way back: no trend goes through a rest.
    """
    slopes = []
    rested_at = -1
    for at, load in enumerate(past):
        if load <= 0:
            rested_at = at
        slopes.append(_agreed(_slope(past, at, TREND_STEPS, rested_at), _slope(past, at, LONG_TREND_STEPS, rested_at)))
    return slopes


def _slope(past: Sequence[float], at: int, steps: int, rested_at: int) -> float:
    """Two steps against the two that lie so many before, as far as known."""
    if at < 2:
        return 0.0
    back = min(steps, at - 1)
    if at - back - 1 <= rested_at:
        return 0.0
    return (past[at] + past[at - 1] - past[at - back] - past[at - back - 1]) / (2 * back)


def _agreed(short: float, long: float) -> float:
    if short * long <= 0:
        return 0.0
    return short if abs(short) < abs(long) else long


def _believed(past: Sequence[float], slopes: Sequence[float], reach: Sequence[float]) -> float:
    """Which part of the trend has come true half way through the horizon."""
    ahead = max(1, len(reach) // 2)
    far = reach[ahead - 1]
    said = [slopes[at] * far for at in range(2, len(past) - ahead)]
    came = [past[at + ahead] - past[at] for at in range(2, len(past) - ahead)]
    squares = math.fsum(value * value for value in said)
    prior = PRIOR_WEIGHT * (slopes[-1] * far) ** 2
    whole = squares + prior
    if whole <= 0:
        return 0.0
    part = (math.fsum(a * b for a, b in zip(said, came, strict=True)) + 0.5 * prior) / whole
    return min(1.2, max(0.0, part))


def _like_now(past: Sequence[float], slopes: Sequence[float], steps: int) -> list[int]:
    """Moments about as high as now whose future is known for half the horizon, most like the present one first.

    What followed quite another load says nothing: the jump from none to that of a day does not come on top of a day's.
    """
    now, slope = past[-1], slopes[-1]
    scale = max(past) - min(past)
    near = NEAR * max(scale, now)
    known = [at for at in range(2, len(past) - max(1, steps // 2)) if abs(past[at] - now) <= near]
    steep = max(map(abs, slopes)) or 1.0

    def unlike(at: int) -> float:
        return abs(past[at] - now) / (scale or 1.0) + 0.5 * abs(slopes[at] - slope) / steep

    return _each_jump_once(sorted(known, key=unlike), past, steps, near)


def _each_jump_once(moments: Sequence[int], past: Sequence[float], steps: int, least: float) -> list[int]:
    """Of all moments that have the same jump before them the first alone: what happened once is no habit."""
    changes = [0.0, *(abs(after - before) for before, after in pairwise(past))]
    chosen: dict[int, int] = {}
    for at in moments:
        jump = max(range(at + 1, min(len(past), at + steps + 1)), key=changes.__getitem__)
        chosen.setdefault(jump if changes[jump] > least else -at, at)
        if len(chosen) == MOST_PATHS:
            break
    return list(chosen.values())


def _errors(past: Sequence[float], origin: int, slope: float, reach: Sequence[float]) -> list[float]:
    """What came less what was forecast from there; beyond what is known the last error goes on."""
    errors = []
    error = 0.0
    for step, far in enumerate(reach, start=1):
        if origin + step < len(past):
            error = past[origin + step] - past[origin] - slope * far
        errors.append(error)
    return errors
