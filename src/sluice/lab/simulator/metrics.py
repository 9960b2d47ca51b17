"""Sums of a window -> the observation a policy sees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sluice.lab.simulator.job import SimulatedJob
from sluice.lab.simulator.state import OUTSIDE, Floats, Ints, Shape, SimulatorState, Window
from sluice.model import Observation, OperatorMetrics, Target, Topology


@dataclass(frozen=True)
class Wiring:
    """Which edges belong to which operator, by name."""

    topology: Topology
    in_edges: tuple[tuple[int, ...], ...]
    out_edges: tuple[tuple[int, ...], ...]
    successors: tuple[tuple[tuple[str, int], ...], ...]
    out_share: tuple[float, ...]
    source: tuple[int | None, ...]

    @staticmethod
    def of(job: SimulatedJob, shape: Shape) -> Wiring:
        topology = job.graph.topology
        names = topology.names
        shares = [edge.share for edge in job.edges] + [1.0] * (shape.target.size - len(job.edges))
        in_edges = _rows(shape.in_start, shape.in_edges)
        out_edges = _rows(shape.out_start, shape.out_edges)
        return Wiring(
            topology=topology,
            in_edges=in_edges,
            out_edges=out_edges,
            successors=tuple(
                tuple((names[shape.target[edge]], edge) for edge in edges if shape.target[edge] != OUTSIDE)
                for edges in out_edges
            ),
            out_share=tuple(sum(shares[edge] for edge in edges) for edges in out_edges),
            source=tuple(int(number) if number >= 0 else None for number in shape.source_index),
        )


@dataclass(frozen=True)
class Ticks:
    """Where a window starts and ends."""

    first: int
    end: int
    tick_s: float

    @property
    def interval_s(self) -> float:
        return (self.end - self.first) * self.tick_s


def lag_records(wiring: Wiring, state: SimulatorState, arrived_now: Ints) -> list[int]:
    """Per operator: what waits in its topic (sources) or at its inputs."""
    queued = state.queued.tolist()
    unread = (arrived_now - state.read).tolist()
    return [
        unread[source] if source is not None else sum(queued[edge] for edge in edges)
        for source, edges in zip(wiring.source, wiring.in_edges, strict=True)
    ]


def observe(
    job: SimulatedJob,
    wiring: Wiring,
    unit_costs: Floats,
    plan: Target,
    ticks: Ticks,
    state: SimulatorState,
    window: Window,
    latency_s: Floats,
    arrived: Ints,
    lag: list[int],
    lag_before: list[int],
) -> Observation:
    settings = job.settings
    interval_s = ticks.interval_s
    busy_truth = (window.busy / (ticks.end - ticks.first)).tolist()
    blocked = (window.backpressure / (ticks.end - ticks.first)).tolist()
    input_rates = (window.consumed / interval_s).tolist()
    emitted = (window.emitted / interval_s).tolist()
    arrival_rates = ((arrived[:, ticks.end] - arrived[:, ticks.first]) / interval_s).tolist()
    mean_latency_s = latency_s.mean(axis=0).tolist()
    bounds = state.bound.tolist()
    state_bytes = state.state_bytes.tolist()
    costs = unit_costs.tolist()
    operators = {}
    for i, name in enumerate(wiring.topology.names):
        busy = busy_truth[i] * settings.busy_ceiling
        backpressure = min(blocked[i], 1.0 - busy)
        input_rate = input_rates[i]
        output_rate = sum(emitted[edge] for edge in wiring.out_edges[i]) / wiring.out_share[i]
        source = wiring.source[i]
        room = sum(bounds[edge] for edge in wiring.in_edges[i])
        operators[name] = OperatorMetrics(
            parallelism=plan.parallelism[name],
            sizes=plan.sizes.get(name),
            input_rate=input_rate,
            output_rate=output_rate,
            output_rates={successor: emitted[edge] for successor, edge in wiring.successors[i]},
            true_input_rate=input_rate / busy if busy > 0 else None,
            true_output_rate=output_rate / busy if busy > 0 else None,
            busy=busy,
            backpressure=backpressure,
            idle=max(0.0, 1.0 - busy - backpressure),
            cpu=busy_truth[i] * settings.cpu_ceiling,
            lag=lag[i],
            lag_rate=(lag[i] - lag_before[i]) / interval_s,
            arrival_rate=None if source is None else arrival_rates[source],
            buffer_usage=min(1.0, lag[i] / room) if room > 0 else None,
            latency_s=None if source is None else mean_latency_s[source],
            io_rate=input_rate * costs[i][1],
            net_rate=input_rate * costs[i][2],
            state_bytes=state_bytes[i],
        )
    return Observation(
        time_s=ticks.end * ticks.tick_s,
        interval_s=interval_s,
        operators=operators,
        edges=wiring.topology.edges,
        latency_samples_s=tuple(np.round(latency_s.max(axis=1), 6).tolist()),
    )


def _rows(start: Ints, members: Ints) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(members[a:b].tolist()) for a, b in pairwise(start))
