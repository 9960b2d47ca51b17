"""One tick of the simulation. Records are integers, so that nothing can leak through rounding.

Where topics forget, what has outlived their retention goes first. A tick then has four steps. *Budgets*: what every
operator could take in this tick, from its capacity, noise and the contention on its workers. *Room*, from the sinks
up: how much an operator may take so that all it emits finds room downstream; what a consumer will surely take in this
tick counts as room, so a buffer smaller than a tick's flow does not throttle the job. *Flow*, from the sources down:
records are taken, processed and emitted. *Waiting*: how old the record is that every source reads next.

The functions run as they are, on lists, and compiled, on arrays; see `ticking`. Both need `len(a)` and `a[i][j]`.
"""

from __future__ import annotations

import math

import numpy as np

from sluice.lab.simulator.job import MICRO
from sluice.lab.simulator.state import Floats, Ints, Shape, SimulatorState, Window

PLENTY = 1 << 40
NETWORK = 2
SMOOTHING = 0.25
GROWTH = 1.05
"""An operator on a shared worker asks for a little more than it last took, so that it can recover."""


def advance(
    first_tick: int,
    tick_s: float,
    shape: Shape,
    state: SimulatorState,
    window: Window,
    arrived: Ints,
    noise: Floats,
    latency_s: Floats,
) -> None:
    """Run `len(noise)` ticks. `arrived[s, t]` counts the records in topic s at the start of tick t."""
    for step in range(len(noise)):
        tick = first_tick + step
        if shape.retention_ticks >= 0:
            _forget(tick, shape, state, arrived)
        _set_budgets(tick, tick_s, state, noise[step])
        if len(state.tasks) > 0:
            _share_workers(tick, tick_s, shape, state, arrived)
        _make_room(tick, shape, state, window)
        _let_flow(tick, shape, state, window, arrived)
        for source in range(len(state.read)):
            latency_s[step][source] = _waiting_s(tick, tick_s, source, state, arrived)


def _forget(tick: int, shape: Shape, state: SimulatorState, arrived: Ints) -> None:
    """Topics delete whole segments, when even their youngest record has outlived the retention."""
    end = (tick - shape.retention_ticks) // shape.segment_ticks * shape.segment_ticks
    if end <= 0:
        return
    for source in range(len(state.read)):
        unread = arrived[source][end] - state.read[source]
        if unread > 0:
            state.expired[source] += unread
            state.read[source] += unread


def _set_budgets(tick: int, tick_s: float, state: SimulatorState, noise: Floats) -> None:
    for i in range(len(state.budget)):
        if tick >= state.switch_tick[i]:
            state.capacity[i] = state.next_capacity[i]
        if tick < state.down_until_tick[i]:
            state.budget[i] = 0
            continue
        budget = state.capacity[i] * noise[i] * tick_s + state.budget_credit[i]
        state.budget[i] = math.floor(budget)
        state.budget_credit[i] = budget - state.budget[i]


def _share_workers(tick: int, tick_s: float, shape: Shape, state: SimulatorState, arrived: Ints) -> None:
    """Tasks that use a capacity their worker has too little of are slowed in proportion.

    Only bytes that leave the worker load its network. Records are spread evenly over an operator's tasks, so its
    slowest task sets the pace of all.
    """
    workers, operators = state.tasks.shape
    wanted = np.empty(operators)
    for i in range(operators):
        waiting = 0 if state.blocked[i] else _available(tick, i, shape, state, arrived)
        recent = math.floor(state.last_consumed[i] * GROWTH) + 1
        wanted[i] = min(state.budget[i], max(waiting, recent))
    slowdown = np.ones(operators)
    demand = np.empty(operators)
    for w in range(workers):
        for d in range(3):
            for i in range(operators):
                demand[i] = 0.0
                if state.tasks[w, i] > 0:
                    share = state.tasks[w, i] / state.tasks[:, i].sum()
                    demand[i] = share * wanted[i] * shape.unit_costs[i, d] / tick_s
                    if d == NETWORK:
                        demand[i] *= state.remote_share[w, i]
            if demand.sum() > shape.worker_capacity[w, d]:
                factor = shape.worker_capacity[w, d] / demand.sum()
                for i in range(operators):
                    if demand[i] > 0.0:
                        slowdown[i] = min(slowdown[i], factor)
    for i in range(operators):
        if slowdown[i] < 1.0:
            state.budget[i] = min(state.budget[i], math.floor(wanted[i] * slowdown[i]))


def _available(tick: int, i: int, shape: Shape, state: SimulatorState, arrived: Ints) -> int:
    source = shape.source_index[i]
    if source >= 0:
        return arrived[source][tick + 1] - state.read[source]  # type: ignore[no-any-return]
    waiting = 0
    for position in range(shape.in_start[i], shape.in_start[i + 1]):
        waiting += state.queued[shape.in_edges[position]]
    return waiting


def _make_room(tick: int, shape: Shape, state: SimulatorState, window: Window) -> None:
    for position in range(len(shape.order) - 1, -1, -1):
        i = shape.order[position]
        allowed = state.budget[i]
        running = tick >= state.down_until_tick[i]
        windowed = shape.window_ticks[i] > 0
        for out in range(shape.out_start[i], shape.out_start[i + 1]):
            edge = shape.out_edges[out]
            room = PLENTY
            if state.bound[edge] >= 0:
                room = max(0, state.bound[edge] - state.queued[edge] + state.reserved[edge])
            if state.pending[edge] > 0:
                if running:
                    released = min(state.pending[edge], room)
                    state.pending[edge] -= released
                    _emit(edge, released, state, window)
                    room -= released
                if state.pending[edge] > 0:
                    allowed = 0
            if not windowed and shape.selectivity_micro[edge] > 0:
                most = ((room + 1) * MICRO - 1 - state.credit_micro[edge]) // shape.selectivity_micro[edge]
                if most < allowed:
                    allowed = most
        state.allowed[i] = allowed
        _reserve(i, shape, state)


def _reserve(i: int, shape: Shape, state: SimulatorState) -> None:
    """Divide what operator i may take among its inputs, by what waits there and what recently came."""
    first, end = shape.in_start[i], shape.in_start[i + 1]
    if end - first == 1:
        state.reserved[shape.in_edges[first]] = state.allowed[i]
        return
    total = 0.0
    for position in range(first, end):
        edge = shape.in_edges[position]
        total += state.queued[edge] + state.flow[edge]
    left = state.allowed[i]
    for position in range(first, end):
        edge = shape.in_edges[position]
        weight = 1.0 if total == 0 else (state.queued[edge] + state.flow[edge]) / total
        state.reserved[edge] = min(left, math.ceil(state.allowed[i] * weight))
        left -= state.reserved[edge]


def _let_flow(tick: int, shape: Shape, state: SimulatorState, window: Window, arrived: Ints) -> None:
    for position in range(len(shape.order)):
        i = shape.order[position]
        available, allowed, budget = _available(tick, i, shape, state, arrived), state.allowed[i], state.budget[i]
        taken = available if available < allowed else allowed
        if shape.source_index[i] >= 0:
            state.read[shape.source_index[i]] += taken
        else:
            _take(i, taken, shape, state)
        state.consumed[i] += taken
        window.consumed[i] += taken
        state.last_consumed[i] = taken
        state.state_bytes[i] = state.state_bytes[i] * shape.state_decay[i] + taken * shape.state_bytes_per_record[i]
        _process(tick, i, taken, shape, state, window)
        blocked = taken < available and taken < budget
        state.blocked[i] = blocked
        if budget > 0:
            busy = taken / budget
            window.busy[i] += busy
            if blocked:
                window.backpressure[i] += 1.0 - busy


def _take(i: int, taken: int, shape: Shape, state: SimulatorState) -> None:
    """What was reserved first, then whatever capacity is left over, input by input."""
    left = taken
    for position in range(shape.in_start[i], shape.in_start[i + 1]):
        edge = shape.in_edges[position]
        part = min(left, state.queued[edge], state.reserved[edge])
        state.queued[edge] -= part
        state.flow[edge] = state.flow[edge] * (1.0 - SMOOTHING) + SMOOTHING * part
        left -= part
    if left == 0:
        return
    for position in range(shape.in_start[i], shape.in_start[i + 1]):
        edge = shape.in_edges[position]
        part = min(left, state.queued[edge])
        state.queued[edge] -= part
        state.flow[edge] += SMOOTHING * part
        left -= part


def _process(tick: int, i: int, taken: int, shape: Shape, state: SimulatorState, window: Window) -> None:
    windowed = shape.window_ticks[i] > 0
    fires = windowed and tick + 1 >= state.fire_tick[i] and tick >= state.down_until_tick[i]
    for out in range(shape.out_start[i], shape.out_start[i + 1]):
        edge = shape.out_edges[out]
        micro = state.credit_micro[edge] + taken * shape.selectivity_micro[edge]
        records = micro // MICRO
        state.credit_micro[edge] = micro % MICRO
        if windowed:
            state.held[edge] += records
            if fires:
                state.pending[edge] += state.held[edge]
                state.held[edge] = 0
        else:
            _emit(edge, records, state, window)
    if fires:
        state.fire_tick[i] += shape.window_ticks[i]


def _emit(edge: int, records: int, state: SimulatorState, window: Window) -> None:
    state.queued[edge] += records
    state.emitted[edge] += records
    window.emitted[edge] += records


def _waiting_s(tick: int, tick_s: float, source: int, state: SimulatorState, arrived: Ints) -> float:
    """Age of the next record to be read (first in, first out); 0 if the topic is empty."""
    number = state.read[source]
    if number >= arrived[source][tick + 1]:
        return 0.0
    oldest = state.oldest_tick[source]
    while arrived[source][oldest + 1] <= number:
        oldest += 1
    state.oldest_tick[source] = oldest
    came = arrived[source][oldest + 1] - arrived[source][oldest]
    within = (number - arrived[source][oldest]) / came
    return (tick + 1 - oldest - within) * tick_s  # type: ignore[no-any-return]


HELPERS = (
    _forget,
    _set_budgets,
    _share_workers,
    _available,
    _make_room,
    _reserve,
    _let_flow,
    _take,
    _process,
    _emit,
    _waiting_s,
)
