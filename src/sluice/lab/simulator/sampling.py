"""Sampling instance sizes on the simulator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sluice.lab.simulator.engine import SimulatedEngine
from sluice.lab.simulator.job import RateCurve, SimulatedJob, SimulatedOperator, SimulatorSettings
from sluice.model import InstanceSize, Target

SATURATING = 10.0


class SimulatedSampling:
    """A `SamplingTarget`: one instance of an operator, given more than it can take.

    Simulated instances do not disturb each other, so the sampling instance needs no normal ones around it.
    """

    def __init__(
        self,
        operator: SimulatedOperator,
        *,
        settings: SimulatorSettings | None = None,
        window_s: float = 10.0,
        seed: int = 0,
    ) -> None:
        self._operator = operator
        self._settings = settings or SimulatorSettings()
        self._window_s = window_s
        self._seeds = itertools.count(seed * 10_000)

    def rates(self, size: InstanceSize) -> Iterator[float]:
        name = self._operator.name
        job = SimulatedJob(
            operators=(self._operator,), edges=(), settings=replace(self._settings, sizes=(size,), buffer_records=None)
        )
        engine = SimulatedEngine(job, {name: self._saturating(size)}, next(self._seeds))
        engine.start(Target(parallelism={name: 1}, sizes={name: {size.name: 1}}))
        while True:
            engine.clock.sleep_s(self._window_s)
            yield engine.observe().operators[name].input_rate or 0.0

    def _saturating(self, size: InstanceSize) -> RateCurve:
        speed = self._operator.speedup(size) if self._operator.speedup else size.cpu_cores
        rate = SATURATING * self._operator.capacity(1) * speed
        return lambda times_s: np.full(len(times_s), rate)
