"""The fewest slot-seconds that keep the latency objective, with the load known in advance.

The objective is that the record being read has waited longer than `slo_s` for at most `violation_budget` of the time
(with 0.05: the 95th percentile of the latency keeps the objective). A rescale stops the job for the engine's downtime,
state included, and may itself break the objective for a while: that is what the budget is spent on.

A dynamic programme over (load step, configuration, age of the oldest unread record): in every step the planner stays
on its configuration or moves to another; moving costs the same from wherever it comes, so a step needs configurations x
ages and not configurations squared. The budget is priced (a Lagrange multiplier, in slots), and the price is searched
until the cheapest plan just keeps it. Ages are rounded up to `AGE_STEP_S`, so a plan promises no more than it keeps.
The planner may choose what it starts with and knows no cool-down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from sluice.lab.clairvoyant.demand import Demand, Rung
from sluice.lab.simulator.state import Floats

AGE_STEP_S = 1.0
PRICE_SEARCH_STEPS = 10
LOWEST_PRICE, HIGHEST_PRICE = 1e-2, 1e4
LATE_AT_THE_END = 1e6
"""Price of a second of age above the objective when the run ends: nobody may leave the work undone."""


@dataclass(frozen=True)
class ClairvoyantPlan:
    """`steps` are (time, configuration). `bound_slot_seconds` is below every plan that keeps the objective."""

    steps: tuple[tuple[float, Rung], ...]
    slot_seconds: float
    bound_slot_seconds: float
    violation_ratio: float
    feasible: bool

    @property
    def rescales(self) -> int:
        return len(self.steps) - 1


def plan(demand: Demand, *, slo_s: float, max_slots: int, violation_budget: float = 0.05) -> ClairvoyantPlan:
    rungs = demand.ladder(max_slots)
    times_s = np.append(np.arange(0.0, demand.duration_s, demand.step_s), demand.duration_s)
    loads = demand.load((times_s[:-1] + times_s[1:]) / 2)
    arrived = np.concatenate([[0.0], np.cumsum(loads * np.diff(times_s))])
    settings = demand.job.settings
    down_s = settings.downtime_s + demand.state_bytes(times_s) / settings.state_bandwidth_bytes_per_s
    ages = int(np.ceil((slo_s + 2 * down_s.max() + 2 * demand.step_s) / AGE_STEP_S)) + 1
    rates = np.array([rung.rate for rung in rungs])
    slots = np.array([float(rung.slots) for rung in rungs])
    # nobody needs more than what drains the longest stop within a step
    useful = int(np.searchsorted(rates, loads.max() * (1.0 + down_s.max() / demand.step_s))) + 1
    moves = _moves(times_s, arrived, rates[:useful], down_s, slo_s, ages)
    problem = Problem(times_s, slots[:useful], *moves)
    budget_s = violation_budget * demand.duration_s
    best, bound = _search_price(problem, budget_s, slo_s)
    path, cost, late_s = best
    return ClairvoyantPlan(
        steps=tuple((float(times_s[step]), rungs[rung]) for step, rung in path),
        slot_seconds=cost,
        bound_slot_seconds=bound,
        violation_ratio=late_s / demand.duration_s,
        feasible=late_s <= budget_s + 1e-9,
    )


Ints = npt.NDArray[np.signedinteger[Any]]
Singles = npt.NDArray[np.float32]


class Problem(NamedTuple):
    """Per step, configuration and age: the age after it and the seconds above the objective, staying or moving.

    A move in `step` is over at the start of step `move_end[step]`.
    """

    times_s: Floats
    slots: Floats
    stay_age: Ints
    stay_late_s: Singles
    move_age: Ints
    move_late_s: Singles
    move_end: Ints


Solution = tuple[list[tuple[int, int]], float, float]
"""(step, configuration) of every move, slot-seconds, seconds above the objective."""


def _search_price(problem: Problem, budget_s: float, slo_s: float) -> tuple[Solution, float]:
    """The cheapest plan within the budget among those some price makes best, and the best Lagrangian bound."""
    low, high = LOWEST_PRICE, HIGHEST_PRICE
    best = _solve(problem, high, slo_s)
    bound = best[1] + high * (best[2] - budget_s)
    for _ in range(PRICE_SEARCH_STEPS):
        price = float(np.sqrt(low * high))
        found = _solve(problem, price, slo_s)
        bound = max(bound, found[1] + price * (found[2] - budget_s))
        if found[2] <= budget_s:
            high = price
            if best[2] > budget_s or found[1] <= best[1]:
                best = found
        else:
            low = price
    return best, min(bound, best[1])


def _solve(problem: Problem, price: float, slo_s: float) -> Solution:
    stay, move_to = _values(problem, price, slo_s)
    times_s, slots = problem.times_s, problem.slots
    rung = int(move_to[-1, 0])
    path = [(0, rung)]
    step = age = 0
    cost = late_s = 0.0
    while step < times_s.size - 1:
        if stay[step, rung, age]:
            cost += slots[rung] * (times_s[step + 1] - times_s[step])
            late_s += problem.stay_late_s[step, rung, age]
            step, age = step + 1, int(problem.stay_age[step, rung, age])
            continue
        rung = int(move_to[step, age])
        end = int(problem.move_end[step])
        path.append((step, rung))
        cost += slots[rung] * (times_s[end] - times_s[step])
        late_s += problem.move_late_s[step, rung, age]
        step, age = end, int(problem.move_age[step, rung, age])
    return path, float(cost), float(late_s)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _values(problem: Problem, price: float, slo_s: float) -> tuple[Ints, Ints]:
    """Backwards over the steps: whether to stay, and where to move; the last row of the second holds the start."""
    times_s, slots, stay_age, stay_late_s, move_age, move_late_s, move_end = problem
    steps, rungs, ages = stay_age.shape
    value = np.zeros((steps + 1, rungs, ages))
    stay = np.ones((steps, rungs, ages), dtype=np.int8)
    move_to = np.zeros((steps + 1, ages), dtype=np.int64)
    for rung in range(rungs):
        for age in range(ages):
            value[steps, rung, age] = LATE_AT_THE_END * max(0.0, age * AGE_STEP_S - slo_s)
    for step in range(steps - 1, -1, -1):
        end = move_end[step]
        cheapest = np.full(ages, np.inf)
        for rung in range(rungs):
            rent = slots[rung] * (times_s[end] - times_s[step])
            for age in range(ages):
                cost = rent + price * move_late_s[step, rung, age] + value[end, rung, move_age[step, rung, age]]
                if cost < cheapest[age]:
                    cheapest[age] = cost
                    move_to[step, age] = rung
        for rung in range(rungs):
            rent = slots[rung] * (times_s[step + 1] - times_s[step])
            for age in range(ages):
                cost = rent + price * stay_late_s[step, rung, age] + value[step + 1, rung, stay_age[step, rung, age]]
                stay[step, rung, age] = cost <= cheapest[age]
                value[step, rung, age] = min(cost, cheapest[age])
    move_to[steps, 0] = np.argmin(value[0, :, 0])
    return stay, move_to


@njit(cache=True)  # type: ignore[untyped-decorator]
def _moves(
    times_s: Floats, arrived: Floats, rates: Floats, down_s: Floats, slo_s: float, ages: int
) -> tuple[Ints, Singles, Ints, Singles, Ints]:
    """Age after, and time above the objective, for staying and for moving: every step, configuration and age."""
    steps, rungs = times_s.size - 1, rates.size
    stay_age = np.zeros((steps, rungs, ages), dtype=np.int32)
    move_age = np.zeros((steps, rungs, ages), dtype=np.int32)
    stay_late_s = np.zeros((steps, rungs, ages), dtype=np.float32)
    move_late_s = np.zeros((steps, rungs, ages), dtype=np.float32)
    move_end = np.zeros(steps, dtype=np.int64)
    for step in range(steps):
        start_s = times_s[step]
        up_s = min(start_s + down_s[step], times_s[steps])
        end = step + 1
        while times_s[end] < up_s:
            end += 1
        move_end[step] = end
        for age in range(ages):
            age_s = age * AGE_STEP_S
            read = _arrived_until(times_s, arrived, start_s - age_s)
            up_age_s = _age_s(times_s, arrived, read, up_s, end)
            for rung in range(rungs):
                after_s = _age_s(
                    times_s, arrived, read + rates[rung] * (times_s[step + 1] - start_s), times_s[step + 1], step + 1
                )
                stay_age[step, rung, age] = _rounded(after_s, ages)
                stay_late_s[step, rung, age] = _late_s(age_s, after_s, times_s[step + 1] - start_s, slo_s)
                after_s = _age_s(times_s, arrived, read + rates[rung] * (times_s[end] - up_s), times_s[end], end)
                move_age[step, rung, age] = _rounded(after_s, ages)
                late_s = _late_s(age_s, up_age_s, up_s - start_s, slo_s)
                move_late_s[step, rung, age] = late_s + _late_s(up_age_s, after_s, times_s[end] - up_s, slo_s)
    return stay_age, stay_late_s, move_age, move_late_s, move_end


@njit(cache=True)  # type: ignore[untyped-decorator]
def _rounded(age_s: float, ages: int) -> int:
    return min(ages - 1, int(np.ceil(age_s / AGE_STEP_S - 1e-9)))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _arrived_until(times_s: Floats, arrived: Floats, time_s: float) -> float:
    """All steps but the last have the same length."""
    if time_s <= 0:
        return 0.0
    step = min(int(time_s / times_s[1]), times_s.size - 2)
    within = min(1.0, (time_s - times_s[step]) / (times_s[step + 1] - times_s[step]))
    return arrived[step] + within * (arrived[step + 1] - arrived[step])  # type: ignore[no-any-return]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _age_s(times_s: Floats, arrived: Floats, read: float, time_s: float, step: int) -> float:
    """How long ago record number `read` arrived, seen at `time_s` (at or before the end of step `step - 1`)."""
    if read >= _arrived_until(times_s, arrived, time_s):
        return 0.0
    while step > 0 and arrived[step - 1] > read:
        step -= 1
    while arrived[step] <= read:
        step += 1
    within = (read - arrived[step - 1]) / (arrived[step] - arrived[step - 1])
    return time_s - (times_s[step - 1] + within * (times_s[step] - times_s[step - 1]))  # type: ignore[no-any-return]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _late_s(before_s: float, after_s: float, length_s: float, slo_s: float) -> float:
    """How long an age that goes from one value to another in a straight line is above the objective."""
    low, high = min(before_s, after_s), max(before_s, after_s)
    if high <= slo_s:
        return 0.0
    if low >= slo_s:
        return length_s
    return length_s * (high - slo_s) / (high - low)
