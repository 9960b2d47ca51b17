"""What a load needs of every operator, and the smallest configurations that can carry it.

Capacities only grow with the number of instances and every operator's input is proportional to the arriving load, so
the smallest configurations for all loads form one sequence: raise the bottleneck by one instance, again and again.

A window that fires into a bounded buffer takes in nothing until its burst is taken, so what comes before it and what
comes after it work in turn: the shares of time that these *stages* need add up, and the one whose bottleneck gains most
is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sluice.lab.run import RunSpec, simulated_job
from sluice.lab.simulator import Capacity, RateCurve, SimulatedJob
from sluice.lab.simulator.state import Floats
from sluice.lab.workloads import rate_curve

NOISE_DRAWS = 512
MOST_INSTANCES = 10_000


@dataclass(frozen=True)
class Demand:
    """The load of a run in records/s at load share 1, and each operator's input per such record."""

    job: SimulatedJob
    load: RateCurve
    inputs: Mapping[str, float]
    duration_s: float
    step_s: float
    """How long a load holds before it may change."""

    def needed(self, load: float) -> dict[str, int]:
        """The fewest instances of every operator that carry a load for ever, noise left out."""
        return {op.name: _fewest(op.capacity, load * self.inputs[op.name]) for op in self.job.operators}

    def configurations(self, max_slots: int, most_rate: float = np.inf) -> list[SlotConfiguration]:
        """Smallest configurations, least first; each carries more than the one before, the last `most_rate`."""
        operators = [op for op in self.job.operators if self.inputs[op.name] > 0]
        random = np.random.Generator(np.random.PCG64(0))
        sigma = self.job.settings.noise
        noise = np.exp(sigma * random.standard_normal((NOISE_DRAWS, len(operators))) - sigma**2 / 2)
        counts = {op.name: 1 for op in self.job.operators}
        stages = self._stages([op.name for op in operators])
        smallest: list[SlotConfiguration] = []
        while sum(counts.values()) <= max_slots and (not smallest or smallest[-1].rate < most_rate):
            carried = np.array([op.capacity(counts[op.name]) / self.inputs[op.name] for op in operators])
            # buffers hold less than a tick, so in every tick the slowest operator sets the pace of its stage
            paces = np.array([(carried * noise)[:, stage].min(axis=1).mean() for stage in stages])
            rate = self._in_turn(paces, counts)
            if not smallest or rate > smallest[-1].rate:
                smallest.append(SlotConfiguration(dict(counts), sum(counts.values()), rate))
            slowest = [stage[int(carried[stage].argmin())] for stage in stages]
            # one more instance of a stage's bottleneck takes this off the time the stage needs per record
            gains = [
                1 / carried[each] - self.inputs[(op := operators[each]).name] / op.capacity(counts[op.name] + 1)
                for each in slowest
            ]
            counts[operators[slowest[int(np.argmax(gains))]].name] += 1
        return smallest

    def _stages(self, names: list[str]) -> list[list[int]]:
        """Positions of the operators of every stage, first stage first."""
        topology = self.job.graph.topology
        bounded = self.job.settings.buffer_records is not None
        windowed = {op.name for op in self.job.operators if op.window_s and bounded}
        before: dict[str, int] = {}
        for name in topology.order:
            before[name] = max((before[up] + (up in windowed) for up in topology.predecessors[name]), default=0)
        return [
            found
            for stage in range(max(before.values()) + 1)
            if (found := [position for position, name in enumerate(names) if before[name] == stage])
        ]

    def _in_turn(self, paces: Floats, counts: Mapping[str, int]) -> float:
        """The load of stages that work in turn; what fits into a buffer blocks nobody."""
        if len(paces) == 1:
            return float(paces[0])
        settings = self.job.settings
        operators = {op.name: op for op in self.job.operators}
        buffered = [
            (settings.buffer_records or 0)
            * counts[edge.target]
            / operators[edge.target].capacity(counts[edge.target])
            / period_s
            for edge in self.job.edges
            if (period_s := operators[edge.source].window_s)
        ]
        return float(min(paces.min(), (1 + min(buffered)) / (1 / paces).sum()))

    def state_bytes(self, times_s: Floats) -> Floats:
        """State of the whole job at the given evenly spaced times, if everything is read as it arrives."""
        spacing_s = float(times_s[1] - times_s[0]) if times_s.size > 1 else 1.0
        loads = self.load(np.maximum(0.0, times_s - spacing_s / 2))
        total = np.zeros(times_s.size)
        for op in self.job.operators:
            gain = loads * self.inputs[op.name] * op.state_bytes_per_record * spacing_s
            keep = np.exp(-spacing_s / op.state_ttl_s) if op.state_ttl_s else 1.0
            held = 0.0
            for number in range(1, times_s.size):
                held = held * keep + gain[number] * (1 + keep) / 2
                total[number] += held
        return total


@dataclass(frozen=True)
class SlotConfiguration:
    """A configuration and the load it carries on average."""

    parallelism: Mapping[str, int]
    slots: int
    rate: float


def demand(spec: RunSpec) -> Demand:
    job = simulated_job(spec)
    shares = spec.pipeline.source_shares()
    inputs: dict[str, float] = {}
    operators = {op.name: op for op in job.operators}
    for name in job.graph.topology.order:
        if name in shares:
            inputs[name] = 1.0 if spec.workload.absolute else shares[name]
        else:
            inputs[name] = sum(
                inputs[edge.source] * operators[edge.source].selectivity * edge.share
                for edge in job.edges
                if edge.target == name
            )
    load = rate_curve(spec.workload, peak_rate=spec.pipeline.peak_rate, seed=spec.seed, speedup=spec.speedup)
    return Demand(job, load, inputs, spec.whole_duration_s, 60.0 / spec.speedup)


def _fewest(capacity: Capacity, rate: float) -> int:
    count = 1
    while capacity(count) < rate and count < MOST_INSTANCES:
        count += 1
    return count
