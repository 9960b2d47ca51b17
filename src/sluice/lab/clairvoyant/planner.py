"""The fewest slot-seconds that keep the latency objective, with the load known in advance.

The objective is that the record being read has waited longer than `slo_s` for at most `violation_budget` of the time
(with 0.05: the 95th percentile of the latency keeps the objective). A rescale stops the job for the engine's downtime,
state included, and may itself break the objective for a while: that is what the budget is spent on.

A dynamic programme over (load step, configuration, age of the oldest unread record): in every step the planner stays
on its configuration or moves to another; moving costs the same from wherever it comes, so a step needs configurations x
ages and not configurations squared. The budget is priced (a Lagrange multiplier, in slots), and the price is searched
until the cheapest plan just keeps it. Ages are rounded up, to seconds or coarser where seconds would take too much
memory, so a plan keeps what it promises. The planner may choose what it starts with and has no cooldown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sluice.compiled import Compiler
from sluice.errors import SluiceError
from sluice.lab.clairvoyant.demand import Demand, SlotConfiguration
from sluice.lab.simulator.state import Floats

FINEST_AGE_STEP_S = 1.0
COARSEST_AGE_STEP = 0.2
"""As a share of the objective: coarser ages would call nearly every backlog late."""
MOST_STATES = 40_000_000
"""Load steps x configurations x ages: one takes 25 bytes, so this is a gigabyte."""
PRICE_SEARCH_STEPS = 10
LOWEST_PRICE, HIGHEST_PRICE = 1e-2, 1e4
LATE_AT_THE_END = 1e6
"""Price of a second of age above the objective when the run ends: no plan may leave the work undone."""

compiled = Compiler("the clairvoyant planner", "lab")


@dataclass(frozen=True)
class ClairvoyantPlan:
    """`steps` are (time, configuration). `bound_slot_seconds` is below every plan that keeps the objective."""

    steps: tuple[tuple[float, SlotConfiguration], ...]
    slot_seconds: float
    bound_slot_seconds: float
    violation_ratio: float
    feasible: bool

    @property
    def rescales(self) -> int:
        return len(self.steps) - 1


def plan(demand: Demand, *, slo_s: float, max_slots: int, violation_budget: float = 0.05) -> ClairvoyantPlan:
    steps = int(np.ceil(demand.duration_s / demand.step_s))
    _age_step_s(steps, 1, slo_s + 2 * demand.step_s, slo_s)
    times_s = np.append(np.arange(0.0, demand.duration_s, demand.step_s), demand.duration_s)
    loads = demand.load((times_s[:-1] + times_s[1:]) / 2)
    arrived = np.concatenate([[0.0], np.cumsum(loads * np.diff(times_s))])
    settings = demand.job.settings
    down_s = settings.downtime_s + demand.state_bytes(times_s) / settings.state_bandwidth_bytes_per_s
    # no load needs more than what drains the longest stop within a step
    most_rate = loads.max() * (1.0 + down_s.max() / demand.step_s)
    configurations = demand.configurations(max_slots, most_rate)
    if not configurations:
        raise SluiceError(f"{max_slots} slots are fewer than the operators: {len(demand.job.operators)}")
    rates = np.array([each.rate for each in configurations])
    slots = np.array([float(each.slots) for each in configurations])
    longest_s = slo_s + 2 * float(down_s.max()) + 2 * demand.step_s
    age_step_s = _age_step_s(steps, len(configurations), longest_s, slo_s)
    ages = int(np.ceil(longest_s / age_step_s)) + 1
    transitions = Transitions(
        times_s, slots, age_step_s, *_transitions(times_s, arrived, rates, down_s, slo_s, ages, age_step_s)
    )
    budget_s = violation_budget * demand.duration_s
    best, bound = _search_price(transitions, budget_s, slo_s)
    path, cost, late_s = best
    return ClairvoyantPlan(
        steps=tuple((float(times_s[step]), configurations[config]) for step, config in path),
        slot_seconds=cost,
        bound_slot_seconds=bound,
        violation_ratio=late_s / demand.duration_s,
        feasible=late_s <= budget_s + 1e-9,
    )


def _age_step_s(steps: int, configurations: int, longest_s: float, slo_s: float) -> float:
    """The finest resolution of ages whose table fits into memory; refused where that is too coarse to plan with."""
    ages = max(MOST_STATES // (steps * configurations) - 2, 1)
    age_step_s = max(FINEST_AGE_STEP_S, longest_s / ages)
    if not age_step_s <= max(FINEST_AGE_STEP_S, COARSEST_AGE_STEP * slo_s):
        raise SluiceError(
            f"the clairvoyant planner cannot plan {steps:,} load steps with waits of up to {longest_s:,.0f} s "
            f"({configurations} configurations): lower the workload's rate or shorten the run"
        )
    return age_step_s


Ints = npt.NDArray[np.signedinteger[Any]]
Singles = npt.NDArray[np.float32]


class Transitions(NamedTuple):
    """Per step, configuration and age: the age after it and the seconds above the objective, staying or moving.

    A move in `step` is over at the start of step `move_end[step]`.
    """

    times_s: Floats
    slots: Floats
    age_step_s: float
    stay_age: Ints
    stay_late_s: Singles
    move_age: Ints
    move_late_s: Singles
    move_end: Ints


Solution = tuple[list[tuple[int, int]], float, float]
"""(step, configuration) of every move, slot-seconds, seconds above the objective."""


def _search_price(transitions: Transitions, budget_s: float, slo_s: float) -> tuple[Solution, float]:
    """The cheapest plan within the budget among those some price makes best, and the best Lagrangian bound."""
    low, high = LOWEST_PRICE, HIGHEST_PRICE
    best = _solve(transitions, high, slo_s)
    bound = best[1] + high * (best[2] - budget_s)
    for _ in range(PRICE_SEARCH_STEPS):
        price = float(np.sqrt(low * high))
        found = _solve(transitions, price, slo_s)
        bound = max(bound, found[1] + price * (found[2] - budget_s))
        if found[2] <= budget_s:
            high = price
            if best[2] > budget_s or found[1] <= best[1]:
                best = found
        else:
            low = price
    return best, min(bound, best[1])


def _solve(transitions: Transitions, price: float, slo_s: float) -> Solution:
    stay, move_to = _values(transitions, price, slo_s)
    times_s, slots = transitions.times_s, transitions.slots
    config = int(move_to[-1, 0])
    path = [(0, config)]
    step = age = 0
    cost = late_s = 0.0
    while step < times_s.size - 1:
        if stay[step, config, age]:
            cost += slots[config] * (times_s[step + 1] - times_s[step])
            late_s += transitions.stay_late_s[step, config, age]
            step, age = step + 1, int(transitions.stay_age[step, config, age])
            continue
        config = int(move_to[step, age])
        end = int(transitions.move_end[step])
        path.append((step, config))
        cost += slots[config] * (times_s[end] - times_s[step])
        late_s += transitions.move_late_s[step, config, age]
        step, age = end, int(transitions.move_age[step, config, age])
    return path, float(cost), float(late_s)


@compiled
def _values(transitions: Transitions, price: float, slo_s: float) -> tuple[Ints, Ints]:
    """Backwards over the steps: whether to stay, and where to move; the last row of the second holds the start."""
    times_s, slots, age_step_s, stay_age, stay_late_s, move_age, move_late_s, move_end = transitions
    steps, configs, ages = stay_age.shape
    value = np.zeros((steps + 1, configs, ages))
    stay = np.ones((steps, configs, ages), dtype=np.int8)
    move_to = np.zeros((steps + 1, ages), dtype=np.int64)
    for config in range(configs):
        for age in range(ages):
            value[steps, config, age] = LATE_AT_THE_END * max(0.0, age * age_step_s - slo_s)
    for step in range(steps - 1, -1, -1):
        end = move_end[step]
        cheapest = np.full(ages, np.inf)
        for config in range(configs):
            rent = slots[config] * (times_s[end] - times_s[step])
            for age in range(ages):
                cost = rent + price * move_late_s[step, config, age] + value[end, config, move_age[step, config, age]]
                if cost < cheapest[age]:
                    cheapest[age] = cost
                    move_to[step, age] = config
        for config in range(configs):
            rent = slots[config] * (times_s[step + 1] - times_s[step])
            for age in range(ages):
                cost = (
                    rent + price * stay_late_s[step, config, age] + value[step + 1, config, stay_age[step, config, age]]
                )
                stay[step, config, age] = cost <= cheapest[age]
                value[step, config, age] = min(cost, cheapest[age])
    move_to[steps, 0] = np.argmin(value[0, :, 0])
    return stay, move_to


@compiled
def _transitions(
    times_s: Floats, arrived: Floats, rates: Floats, down_s: Floats, slo_s: float, ages: int, age_step_s: float
) -> tuple[Ints, Singles, Ints, Singles, Ints]:
    """Age after, and time above the objective, for staying and for moving: every step, configuration and age."""
    steps, configs = times_s.size - 1, rates.size
    stay_age = np.zeros((steps, configs, ages), dtype=np.int32)
    move_age = np.zeros((steps, configs, ages), dtype=np.int32)
    stay_late_s = np.zeros((steps, configs, ages), dtype=np.float32)
    move_late_s = np.zeros((steps, configs, ages), dtype=np.float32)
    move_end = np.zeros(steps, dtype=np.int64)
    for step in range(steps):
        start_s = times_s[step]
        up_s = min(start_s + down_s[step], times_s[steps])
        end = step + 1
        while times_s[end] < up_s:
            end += 1
        move_end[step] = end
        for age in range(ages):
            age_s = age * age_step_s
            read = _arrived_until(times_s, arrived, start_s - age_s)
            up_age_s = _age_s(times_s, arrived, read, up_s, end)
            for config in range(configs):
                after_s = _age_s(
                    times_s, arrived, read + rates[config] * (times_s[step + 1] - start_s), times_s[step + 1], step + 1
                )
                stay_age[step, config, age] = _age_index(after_s, ages, age_step_s)
                stay_late_s[step, config, age] = _late_s(age_s, after_s, times_s[step + 1] - start_s, slo_s)
                after_s = _age_s(times_s, arrived, read + rates[config] * (times_s[end] - up_s), times_s[end], end)
                move_age[step, config, age] = _age_index(after_s, ages, age_step_s)
                late_s = _late_s(age_s, up_age_s, up_s - start_s, slo_s)
                move_late_s[step, config, age] = late_s + _late_s(up_age_s, after_s, times_s[end] - up_s, slo_s)
    return stay_age, stay_late_s, move_age, move_late_s, move_end


@compiled
def _age_index(age_s: float, ages: int, age_step_s: float) -> int:
    return min(ages - 1, int(np.ceil(age_s / age_step_s - 1e-9)))


@compiled
def _arrived_until(times_s: Floats, arrived: Floats, time_s: float) -> float:
    """All steps but the last have the same length."""
    if time_s <= 0:
        return 0.0
    step = min(int(time_s / times_s[1]), times_s.size - 2)
    within = min(1.0, (time_s - times_s[step]) / (times_s[step + 1] - times_s[step]))
    return arrived[step] + within * (arrived[step + 1] - arrived[step])  # type: ignore[no-any-return]


@compiled
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


@compiled
def _late_s(before_s: float, after_s: float, length_s: float, slo_s: float) -> float:
    """How long an age that goes from one value to another in a straight line is above the objective."""
    low, high = min(before_s, after_s), max(before_s, after_s)
    if high <= slo_s:
        return 0.0
    if low >= slo_s:
        return length_s
    return length_s * (high - slo_s) / (high - low)
