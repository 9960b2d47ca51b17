"""What a load needs of every operator, and the smallest configurations that can carry it.

Capacities only grow with the number of instances and every operator's input is proportional to the arriving load, so
the smallest configurations for all loads form one sequence: raise the bottleneck by one instance, again and again.
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
        smallest: list[SlotConfiguration] = []
        while sum(counts.values()) <= max_slots and (not smallest or smallest[-1].rate < most_rate):
            carried = np.array([op.capacity(counts[op.name]) / self.inputs[op.name] for op in operators])
            # buffers hold less than a tick, so in every tick the slowest operator sets the pace of all
            rate = float((carried * noise).min(axis=1).mean())
            if not smallest or rate > smallest[-1].rate:
                smallest.append(SlotConfiguration(dict(counts), sum(counts.values()), rate))
            counts[operators[int(carried.argmin())].name] += 1
        return smallest

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
