"""Which configuration to run, and from when on: every plan is played through on the paths the load may take.

A plan holds what there is for a while and then changes once, or never. On a path the backlog follows from load and
capacity; while the job stands still for a change, nothing is read. Whatever the plan, whoever falls behind on a path
reacts: once an action is possible again, the job is made large enough for what comes there. A plan costs its slots, a
price for every second in which the record being read has waited longer than the objective, one for the backlog it
leaves behind, and one for every action.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

REACTS_AT = 0.4
"""Share of the objective a record must have waited before a job that falls behind reacts."""
ROOM = 1.15
"""What a reaction provides beyond the largest load to come."""
PREMIUM = 1.1
"""Slots of a reaction over those of a plan: it is made in a hurry, and in whole instances."""
LONGEST = 20.0
"""Backlogs of so many objectives and more count in proportion; the price of a second of shorter ones grows with it."""


@dataclass(frozen=True)
class Option:
    """A configuration: its slots and the load it carries, in records/s arriving at all sources together."""

    slots: float
    rate: float


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What things cost: `late_price` in slots per late second, `action_price` in slot-seconds."""

    step_s: float
    downtime_s: float
    start_s: float
    cooldown_s: float
    objective_s: float
    late_price: float
    action_price: float
    slots_per_rate: float
    """What a reaction pays for every record/s."""
    most_rate: float = math.inf
    """What the job can be made to carry at most."""
    is_behind: bool = False
    """Whether there is a backlog already that calls for a reaction."""


@dataclass(frozen=True)
class PlanCost:
    """Of one plan, mean over the paths: `option` is null if it changes nothing."""

    total: float
    late_s: float
    wait_steps: int
    option: int | None


def cheapest_plan(
    paths: Sequence[Sequence[float]],
    lag: float,
    present: Option,
    options: Sequence[Option],
    waits: Sequence[int],
    terms: Terms,
) -> tuple[PlanCost, PlanCost]:
    """The cheapest plan of all, and the one that changes nothing unless it falls behind."""
    steps = len(paths[0])
    share = 1.0 / len(paths)
    peaks = [_peaks(path) for path in paths]
    held = [_Flow(path, peak, terms).hold(lag, present) for path, peak in zip(paths, peaks, strict=True)]
    never = PlanCost(share * sum(flow.cost for flow in held), share * sum(flow.late_s for flow in held), steps, None)
    best = never
    for wait in waits:
        if wait >= steps:
            continue
        rent = present.slots * wait * terms.step_s + terms.action_price
        for number, option in enumerate(options):
            if rent + option.slots * (steps - wait) * terms.step_s >= best.total:
                continue
            cost = late_s = 0.0
            for path, peak, kept in zip(paths, peaks, held, strict=True):
                flow = kept
                if kept.reacted_at is None or kept.reacted_at >= wait:
                    flow = _Flow(path, peak, terms).change(kept, wait, present, option)
                cost += flow.cost
                late_s += flow.late_s
                if cost * share >= best.total:
                    break
            else:
                best = PlanCost(cost * share, late_s * share, wait, number)
    return best, never


class _Flow:
    """One path played through; a scratch pad, filled by `hold` or `change`."""

    __slots__ = ("cost", "lags", "late", "late_s", "path", "peaks", "reacted_at", "terms")

    def __init__(self, path: Sequence[float], peaks: Sequence[float], terms: Terms) -> None:
        self.path = path
        self.peaks = peaks
        self.terms = terms
        self.lags: list[float] = []
        self.late: list[float] = []
        self.late_s = 0.0
        self.cost = 0.0
        self.reacted_at: int | None = None

    def hold(self, lag: float, present: Option) -> _Flow:
        """What there is goes on; the backlog and the late time before every step are kept for plans that wait."""
        self._play(0, lag, present.rate, present, 0.0, 0.0, 0.0, keep=True)
        return self

    def change(self, kept: _Flow, wait: int, present: Option, option: Option) -> _Flow:
        terms = self.terms
        self.late_s = kept.late[wait]
        self.cost = present.slots * wait * terms.step_s + terms.action_price
        starting_s = terms.start_s if option.rate > present.rate else 0.0
        self._play(wait, kept.lags[wait], present.rate, option, terms.downtime_s, starting_s, terms.cooldown_s)
        return self

    def _play(
        self,
        first: int,
        lag: float,
        rate_before: float,
        option: Option,
        down_s: float,
        starting_s: float,
        cooling_s: float,
        keep: bool = False,
    ) -> None:
        terms, path, peaks = self.terms, self.path, self.peaks
        step_s, objective_s, steps = terms.step_s, terms.objective_s, len(path)
        reacts_at_s = REACTS_AT * objective_s
        rate, slots, late_s = option.rate, option.slots, self.late_s
        slot_s = 0.0
        age_s = lag / path[first] if path[first] > 0 else 0.0
        # who is behind already decides about that now, and counts on no reaction; where nothing helps nobody reacts
        reacts = not terms.is_behind and rate < terms.most_rate
        for number in range(first, steps):
            if keep:
                self.lags.append(lag)
                self.late.append(late_s)
            load = path[number]
            if down_s > 0 or starting_s > 0:
                stopped_s = down_s if down_s < step_s else step_s
                down_s -= stopped_s
                slow_s = min(starting_s, step_s - stopped_s)
                starting_s -= slow_s
                read = slow_s * rate_before + (step_s - stopped_s - slow_s) * rate
            elif lag <= 0.0 and rate >= peaks[number]:
                # nothing will wait from here on
                if age_s > objective_s:
                    late_s += _late_s(age_s, 0.0, step_s, objective_s)
                if keep:
                    left = steps - number - 1
                    self.lags += [0.0] * left
                    self.late += [late_s] * left
                slot_s += slots * step_s * (steps - number)
                age_s = 0.0
                break
            else:
                if reacts and age_s > reacts_at_s and load > rate and cooling_s <= 0 and number > first:
                    if self.reacted_at is None:
                        self.reacted_at = number
                    rate_before = rate
                    rate = min(terms.most_rate, ROOM * peaks[number] + lag / max(terms.cooldown_s, 4 * step_s))
                    reacts = rate < terms.most_rate
                    slots = max(slots, PREMIUM * terms.slots_per_rate * rate)
                    self.cost += terms.action_price
                    cooling_s = terms.cooldown_s
                    stopped_s = terms.downtime_s if terms.downtime_s < step_s else step_s
                    down_s = terms.downtime_s - stopped_s
                    starting_s = terms.start_s
                    read = (step_s - stopped_s) * (rate_before if starting_s else rate)
                else:
                    read = rate * step_s
            slot_s += slots * step_s
            cooling_s -= step_s
            lag += load * step_s - read
            if lag < 0.0:
                lag = 0.0
            before_s, age_s = age_s, (lag / load if load > 0 else 0.0)
            if age_s > objective_s or before_s > objective_s:
                late_s += _late_s(before_s, age_s, step_s, objective_s)
        steep_s = min(age_s, LONGEST * objective_s)
        left_s = steep_s * (age_s - steep_s / 2) / objective_s
        self.late_s = late_s
        self.cost += slot_s + terms.late_price * (late_s + left_s)


def _peaks(path: Sequence[float]) -> list[float]:
    """The largest load from every step on."""
    peaks = list(path)
    for step in range(len(path) - 2, -1, -1):
        if peaks[step + 1] > peaks[step]:
            peaks[step] = peaks[step + 1]
    return peaks


def _late_s(before_s: float, after_s: float, length_s: float, objective_s: float) -> float:
    """How long an age that goes from one value to another in a straight line is above the objective."""
    if before_s >= objective_s and after_s >= objective_s:
        return length_s
    low, high = (before_s, after_s) if before_s < after_s else (after_s, before_s)
    return length_s * (high - objective_s) / (high - low)
