"""The simulator's arrays: what never changes, what the job carries along, what one window adds up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sluice.lab.simulator.job import MICRO, SimulatedJob, SimulatedOperator

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNBOUNDED = -1
OUTSIDE = -1
"""The target of a sink's output: every operator has at least one outgoing edge."""


class Shape(NamedTuple):
    """Operators are numbered as in the graph, edges as in the graph followed by one to the outside per sink.

    `in_edges[in_start[i] : in_start[i + 1]]` are the edges into operator i, likewise for out.
    """

    order: Ints
    source_index: Ints  # which source an operator is, -1 for the others
    in_start: Ints
    in_edges: Ints
    out_start: Ints
    out_edges: Ints
    target: Ints
    selectivity_micro: Ints  # per edge
    window_ticks: Ints  # per operator, 0 without a window
    state_decay: Floats
    state_bytes_per_record: Floats
    unit_costs: Floats  # operator x (cpu, io, net), per record
    worker_capacity: Floats  # worker x (cpu, io, net), per second
    retention_ticks: int  # -1: topics keep everything
    segment_ticks: int


class SimulatorState(NamedTuple):
    """Everything a simulation carries from tick to tick."""

    capacity: Floats  # records/s now
    next_capacity: Floats  # records/s from switch_tick on
    switch_tick: Ints
    down_until_tick: Ints
    fire_tick: Ints
    read: Ints  # per source, position in its topic: records read, and those deleted before it could
    consumed: Ints
    queued: Ints  # per edge, waiting at the consumer; to the outside: delivered
    bound: Ints  # per edge, most that may wait
    emitted: Ints  # per edge
    credit_micro: Ints  # per edge, millionths of a record not emitted yet
    held: Ints  # per edge, output of a window still open
    pending: Ints  # per edge, output of an ended window that found no room yet
    flow: Floats  # per edge, smoothed records per tick
    reserved: Ints  # per edge, scratch: what the consumer will surely take this tick
    budget: Ints  # per operator, scratch
    allowed: Ints  # per operator, scratch
    budget_credit: Floats
    last_consumed: Ints
    blocked: Ints
    state_bytes: Floats
    oldest_tick: Ints  # per source, tick in which the next record to read arrived
    expired: Ints  # per source, records its topic deleted unread
    tasks: Floats  # worker x operator
    remote_share: Floats  # worker x operator, share of the links of its tasks there that leave the worker


class Window(NamedTuple):
    """Sums since the last observation; `latency_s` has one row per tick and one column per source."""

    consumed: Ints
    emitted: Ints  # per edge
    busy: Floats
    backpressure: Floats


def make_shape(job: SimulatedJob) -> Shape:
    topology = job.graph.topology
    index = {name: number for number, name in enumerate(topology.names)}
    operators = job.operators
    ends = [(index[edge.source], index[edge.target], edge.share) for edge in job.edges]
    ends += [(index[name], OUTSIDE, 1.0) for name in topology.sinks]
    sources = {index[name]: number for number, name in enumerate(topology.sources)}
    settings = job.settings
    in_start, in_edges = _grouped([target for _, target, _ in ends], len(operators))
    out_start, out_edges = _grouped([source for source, _, _ in ends], len(operators))
    workers = settings.cluster.workers if settings.cluster else ()
    return Shape(
        order=np.array([index[name] for name in topology.order], dtype=np.int64),
        source_index=np.array([sources.get(number, -1) for number in range(len(operators))], dtype=np.int64),
        in_start=in_start,
        in_edges=in_edges,
        out_start=out_start,
        out_edges=out_edges,
        target=np.array([target for _, target, _ in ends], dtype=np.int64),
        selectivity_micro=np.array(
            [round(operators[source].selectivity * share * MICRO) for source, _, share in ends], dtype=np.int64
        ),
        window_ticks=np.array(
            [max(1, round(op.window_s / settings.tick_s)) if op.window_s else 0 for op in operators], dtype=np.int64
        ),
        state_decay=np.array(
            [float(np.exp(-settings.tick_s / op.state_ttl_s)) if op.state_ttl_s else 1.0 for op in operators]
        ),
        state_bytes_per_record=np.array([op.state_bytes_per_record for op in operators]),
        unit_costs=np.array(
            [
                (_cpu_per_record(op, settings.cpu_ceiling), op.io_bytes_per_record, op.net_bytes_per_record)
                for op in operators
            ],
            dtype=np.float64,
        ),
        worker_capacity=np.array(
            [[np.inf if limit is None else limit for limit in (w.cpu, w.io, w.net)] for w in workers], dtype=np.float64
        ).reshape(len(workers), 3),
        retention_ticks=round(settings.retention_s / settings.tick_s) if settings.retention_s else -1,
        segment_ticks=max(1, round(settings.segment_s / settings.tick_s)),
    )


def make_state(shape: Shape, operators: int, sources: int, workers: int) -> SimulatorState:
    edges = shape.target.size

    def ints(size: int) -> Ints:
        return np.zeros(size, dtype=np.int64)

    return SimulatorState(
        capacity=np.zeros(operators),
        next_capacity=np.zeros(operators),
        switch_tick=ints(operators),
        down_until_tick=ints(operators),
        fire_tick=shape.window_ticks.copy(),
        read=ints(sources),
        consumed=ints(operators),
        queued=ints(edges),
        bound=np.full(edges, UNBOUNDED, dtype=np.int64),
        emitted=ints(edges),
        credit_micro=ints(edges),
        held=ints(edges),
        pending=ints(edges),
        flow=np.zeros(edges),
        reserved=ints(edges),
        budget=ints(operators),
        allowed=ints(operators),
        budget_credit=np.zeros(operators),
        last_consumed=ints(operators),
        blocked=ints(operators),
        state_bytes=np.zeros(operators),
        oldest_tick=ints(sources),
        expired=ints(sources),
        tasks=np.zeros((workers, operators)),
        remote_share=np.zeros((workers, operators)),
    )


def make_window(operators: int, edges: int) -> Window:
    return Window(
        consumed=np.zeros(operators, dtype=np.int64),
        emitted=np.zeros(edges, dtype=np.int64),
        busy=np.zeros(operators),
        backpressure=np.zeros(operators),
    )


def _cpu_per_record(operator: SimulatedOperator, cpu_ceiling: float) -> float:
    return cpu_ceiling / operator.capacity(1) if operator.cpu_per_record is None else operator.cpu_per_record


def _grouped(keys: list[int], groups: int) -> tuple[Ints, Ints]:
    """Compressed rows: where each group starts, and the positions of its members."""
    members = [[position for position, key in enumerate(keys) if key == group] for group in range(groups)]
    start = np.cumsum([0, *(len(found) for found in members)], dtype=np.int64)
    return start, np.array([position for found in members for position in found], dtype=np.int64)
