"""Which configuration to run, and from when on: every plan is played through on the paths the load may take.

A plan holds what there is for a while and then changes once, or never. On a path the backlog follows from load and
capacity; while the job stands still for a change, nothing is read. A plan costs its slots, a price for every second in
which the record being read has waited longer than the objective, and one for the backlog it leaves behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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
    objective_s: float
    late_price: float
    action_price: float


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
    """The cheapest plan of all, and the one that never changes anything."""
    steps = len(paths[0])
    share = 1.0 / len(paths)
    held = [_held(path, lag, present, terms) for path in paths]
    never = PlanCost(
        present.slots * steps * terms.step_s
        + share * sum(_priced(late[-1], lags[-1], path[-1], terms) for path, (lags, late) in zip(paths, held, strict=True)),
        share * sum(late[-1] for _, late in held),
        steps,
        None,
    )
    best = never
    for wait in waits:
        if wait >= steps:
            continue
        for number, option in enumerate(options):
            total = present.slots * wait * terms.step_s + option.slots * (steps - wait) * terms.step_s
            total += terms.action_price
            if total >= best.total:
                continue
            late_s = 0.0
            cost = 0.0
            for path, (lags, late) in zip(paths, held, strict=True):
                later_s, left = _changed(path, wait, lags[wait], present.rate, option.rate, terms)
                late_s += late[wait] + later_s
                cost += _priced(late[wait] + later_s, left, path[-1], terms)
            total += cost * share
            if total < best.total:
                best = PlanCost(total, late_s * share, wait, number)
    return best, never


def _priced(late_s: float, left: float, load: float, terms: Terms) -> float:
    """Late seconds, and a backlog at the end: half an objective of it is nearly nothing, two are a lot."""
    age_s = min(left / load if load > 0 else 0.0, 20 * terms.objective_s)
    return terms.late_price * (late_s + age_s * age_s / (2 * terms.objective_s))


def _held(path: Sequence[float], lag: float, present: Option, terms: Terms) -> tuple[list[float], list[float]]:
    """Backlog and late seconds so far at the start of every step, and at the end."""
    lags, late = [lag], [0.0]
    late_s = 0.0
    step_s, objective_s = terms.step_s, terms.objective_s
    age_s = lag / path[0] if path[0] > 0 else 0.0
    for load in path:
        lag = max(0.0, lag + (load - present.rate) * step_s)
        before_s, age_s = age_s, (lag / load if load > 0 else 0.0)
        if age_s > objective_s or before_s > objective_s:
            late_s += _late_s(before_s, age_s, step_s, objective_s)
        lags.append(lag)
        late.append(late_s)
    return lags, late


def _changed(
    path: Sequence[float], first: int, lag: float, rate_before: float, rate: float, terms: Terms
) -> tuple[float, float]:
    """Late seconds from a change on, and the backlog at the end; new instances join `start_s` after the stop."""
    step_s, objective_s = terms.step_s, terms.objective_s
    down_s, starting_s = terms.downtime_s, terms.start_s if rate > rate_before else 0.0
    late_s = 0.0
    load = path[first]
    age_s = lag / load if load > 0 else 0.0
    for number in range(first, len(path)):
        load = path[number]
        if down_s > 0 or starting_s > 0:
            stopped_s = min(down_s, step_s)
            down_s -= stopped_s
            slow_s = min(starting_s, step_s - stopped_s)
            starting_s -= slow_s
            read = slow_s * rate_before + (step_s - stopped_s - slow_s) * rate
        else:
            read = rate * step_s
        lag = lag + load * step_s - read
        if lag < 0.0:
            lag = 0.0
        before_s, age_s = age_s, (lag / load if load > 0 else 0.0)
        if age_s > objective_s or before_s > objective_s:
            late_s += _late_s(before_s, age_s, step_s, objective_s)
    return late_s, lag


def _late_s(before_s: float, after_s: float, length_s: float, objective_s: float) -> float:
    """How long an age that goes from one value to another in a straight line is above the objective."""
    if before_s >= objective_s and after_s >= objective_s:
        return length_s
    low, high = (before_s, after_s) if before_s < after_s else (after_s, before_s)
    return length_s * (high - objective_s) / (high - low)
