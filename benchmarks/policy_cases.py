"""Jobs and loads nobody has tuned a policy on: drawn from a seed, so that a development and a held-out split differ.

Jobs: some operators in a line, with a join, a fan-out or both; capacities that are linear, lose with every instance,
have a bend or saturate; windows that fire in bursts; state; edges that are bounded buffers or topics. Loads: waves with
noise, walks, ramps, steps, squares, spikes, and traces (a day's wave, noise that lasts, and bursts).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sluice.control.guards import Guards
from sluice.lab.pipelines import pipelines
from sluice.lab.run import THESIS_GUARDS, RunSpec
from sluice.lab.simulator import (
    Capacity,
    CapacityTable,
    Linear,
    PowerLaw,
    SimulatedJob,
    SimulatedOperator,
    SimulatorSettings,
)
from sluice.lab.workloads import workloads
from sluice.lab.workloads.base import Floats
from sluice.model import Edge
from sluice.protocol import Policy

MINUTES = 140
SHAPES = ("line", "join", "fan-out", "both")
PATTERNS = ("wave", "walk", "ramp", "steps", "square", "spikes", "trace")
BUFFERS = (2000, 5000, 20_000, None)
LIVE: Mapping[str, Any] = {"downtime_s": 0.0, "state_bandwidth_bytes_per_s": 1e15}
"""Simulator settings under which a rescale stops nothing."""


@dataclass(frozen=True, kw_only=True)
class DrawnLoad:
    """A pattern whose parameters come from a seed; loads are shares of the peak."""

    pattern: str
    seed: int
    absolute: bool = False

    def loads(self, random: np.random.Generator) -> Floats:
        shape = np.random.Generator(np.random.PCG64(self.seed))
        minute = np.arange(MINUTES)
        low, noise = shape.uniform(0.1, 0.5), shape.uniform(0.0, 0.06)
        match self.pattern:
            case "wave":
                first, second = shape.uniform(35, 130, 2)
                swing = np.cos(2 * np.pi * minute / first + shape.uniform(0, 6)) * 0.8
                swing += np.cos(2 * np.pi * minute / second + shape.uniform(0, 6)) * 0.2
                smooth = low + (1 - low) * (1 + swing) / 2
            case "walk":
                steps = random.uniform(-1, 1, MINUTES) * shape.uniform(0.03, 0.2)
                smooth = np.empty(MINUTES)
                load = shape.uniform(0.3, 0.8)
                for number, step in enumerate(steps):
                    load = min(1.1, max(0.05, load + step))
                    smooth[number] = load
            case "ramp":
                climbed = np.cumsum(random.uniform(0, 1, MINUTES))
                smooth = low / 2 + (1 - low / 2) * climbed / climbed[-1]
                smooth = smooth if shape.random() < 0.5 else smooth[::-1]
            case "steps":
                lengths = shape.integers(12, 45, 12)
                levels = shape.uniform(low, 1.0, 12)
                smooth = np.repeat(levels, lengths)[:MINUTES]
            case "square":
                phase = shape.integers(12, 50)
                smooth = np.where((minute // phase) % 2 == shape.integers(2), low, shape.uniform(0.7, 1.0))
            case "trace":
                smooth = low + (1 - low) * (1 + np.cos(2 * np.pi * minute / shape.uniform(90, 200) + low * 20)) / 3
                drift = np.zeros(MINUTES)
                for number in range(1, MINUTES):
                    drift[number] = 0.9 * drift[number - 1] + random.normal(0, 0.03)
                smooth = smooth * np.exp(drift)
                for start in random.integers(5, MINUTES - 10, 2):
                    smooth[start : start + random.integers(2, 8)] *= random.uniform(1.2, 1.8)
                smooth = np.minimum(smooth, 1.1)
            case "spikes":
                smooth = np.full(MINUTES, low)
                for start in shape.integers(5, MINUTES - 10, shape.integers(3, 8)):
                    smooth[start : start + shape.integers(3, 10)] = shape.uniform(0.6, 1.0)
            case unknown:
                raise ValueError(f"unknown pattern {unknown!r}; known: {', '.join(PATTERNS)}")
        noisy: Floats = np.maximum(0.0, smooth + random.uniform(-noise, noise, MINUTES))
        return noisy


@dataclass(frozen=True)
class Saturating:
    """`rate` with `needed` instances, and never more than a certain multiple: half of that with `halfway` instances."""

    rate: float
    needed: float
    halfway: float

    def __call__(self, instances: int) -> float:
        return self.rate * (self.needed + self.halfway) / self.needed * instances / (instances + self.halfway)


@dataclass(frozen=True, kw_only=True)
class DrawnJob:
    """A job whose shape, costs and engine come from a seed."""

    seed: int
    peak_rate: float = 100_000.0
    live: bool = False
    """Whether a rescale stops nothing."""
    slow_sink: float | None = None
    """Records/s that the system behind the sinks takes, however many instances write, as a share of the peak."""

    @property
    def is_bursty(self) -> bool:
        """Whether windows fire into bounded buffers: the operator that fires is blocked until its burst is taken."""
        job = self.simulated()
        return job.settings.buffer_records is not None and any(op.window_s for op in job.operators)

    def source_shares(self) -> Mapping[str, float]:
        return self._drawn()[2]

    def simulated(self) -> SimulatedJob:
        operators, edges, _, settings, start = self._drawn()
        return SimulatedJob(
            operators=operators,
            edges=edges,
            settings=settings,
            initial_parallelism={operator.name: start for operator in operators},
        )

    def _drawn(
        self,
    ) -> tuple[tuple[SimulatedOperator, ...], tuple[Edge, ...], dict[str, float], SimulatorSettings, int]:
        random = np.random.Generator(np.random.PCG64(self.seed))
        shape = SHAPES[random.integers(len(SHAPES))]
        middle = [f"op{number}" for number in range(random.integers(1, 4))]
        sources = ["left", "right"] if shape in ("join", "both") else ["source"]
        sinks = ["sink", "archive"] if shape in ("fan-out", "both") else ["sink"]
        pairs = [(name, middle[0]) for name in sources]
        pairs += list(itertools.pairwise(middle)) + [(middle[-1], name) for name in sinks]
        shares = {name: float(random.uniform(0.4, 1.0)) for name in sources}
        rates = {name: share * self.peak_rate for name, share in shares.items()}
        operators = []
        for name in (*sources, *middle, *sinks):
            rate = sum(rates[a] for a, b in pairs if b == name) or rates.get(name, 0.0)
            windowed = name in middle and random.random() < 0.25
            selectivity = float(random.uniform(0.02, 0.3) if windowed else random.uniform(0.2, 1.2))
            selectivity = selectivity if name in middle else 1.0
            state = random.uniform(10, 300) if name in middle and random.random() < 0.5 else 0.0
            operators.append(
                SimulatedOperator(
                    name=name,
                    capacity=self._capacity(name, rate, random, name in sinks),
                    selectivity=selectivity,
                    window_s=float(random.choice([10.0, 30.0, 60.0])) if windowed else None,
                    state_bytes_per_record=float(state),
                    state_ttl_s=float(random.uniform(10, 300)) if state else None,
                )
            )
            rates[name] = rate * selectivity
        settings = SimulatorSettings(
            buffer_records=BUFFERS[random.integers(len(BUFFERS))],
            rescale="job",
            downtime_s=float(random.uniform(20, 60)),
            busy_ceiling=float(random.uniform(0.75, 1.0)),
            noise=float(random.uniform(0.02, 0.08)),
        )
        if self.live:
            settings = replace(settings, **LIVE)
        edges = tuple(Edge(source=a, target=b) for a, b in pairs)
        return tuple(operators), edges, shares, settings, int(random.integers(2, 11))

    def _capacity(self, name: str, rate: float, random: np.random.Generator, is_sink: bool) -> Capacity:
        needed = float(random.uniform(1.2, 9.0))
        kind, exponent = random.random(), float(random.uniform(0.7, 0.98))
        bend = int(random.integers(3, 9))
        if is_sink and self.slow_sink is not None:
            most = rate * self.slow_sink
            return CapacityTable({1: most / 2, 2: most, 200: most * 1.001})
        if kind < 0.3:
            return Linear(rate / needed)
        if kind < 0.6:
            return PowerLaw(rate / needed**exponent, exponent)
        if kind < 0.8:
            return Saturating(rate, needed, halfway=float(random.uniform(6, 30)))
        each = rate / needed
        return CapacityTable({1: each, bend: each * bend, 40: each * (bend + (40 - bend) * exponent * 0.9)})


def _guards(*, live: bool) -> Guards:
    return Guards(**{**THESIS_GUARDS, **({"cooldown_s": 0.0} if live else {})})


@dataclass(frozen=True, kw_only=True)
class DrawnCase:
    """One drawn job under one drawn load, as bench cells are: everything but the policy."""

    job: int
    pattern: str
    seed: int = 0
    live: bool = False
    slow_sink: float | None = None

    @property
    def pair(self) -> str:
        return f"{self.job}/{self.pattern}"

    @property
    def kind(self) -> str:
        return "bursts" if DrawnJob(seed=self.job).is_bursty else "flowing"

    def spec(self, policy: Policy) -> RunSpec:
        return RunSpec(
            pipeline=DrawnJob(seed=self.job, live=self.live, slow_sink=self.slow_sink),
            policy=policy,
            workload=DrawnLoad(pattern=self.pattern, seed=self.job * 31 + self.seed),
            guards=_guards(live=self.live),
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class ThesisCase:
    """A query of the thesis under one of its loads."""

    query: str
    load: str
    seed: int
    live: bool = False

    @property
    def pair(self) -> str:
        return f"{self.query}/{self.load}"

    @property
    def kind(self) -> str:
        return self.query

    def spec(self, policy: Policy) -> RunSpec:
        return RunSpec(
            pipeline=pipelines.create(self.query),
            policy=policy,
            workload=workloads.create(self.load),
            guards=_guards(live=self.live),
            seed=self.seed,
            simulator=LIVE if self.live else {},
        )


Case = DrawnCase | ThesisCase
