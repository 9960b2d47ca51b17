"""The simulator through the suite of all engines."""

from __future__ import annotations

import numpy as np
import pytest

from sluice.control.engine import Engine
from sluice.lab.simulator import Linear, SimulatedEngine, SimulatedJob, SimulatedOperator, chain
from sluice.testing.engine_suite import EngineSuite

RATE = 100.0


class TestSimulator(EngineSuite):
    @pytest.fixture
    def engine(self) -> Engine:
        job = SimulatedJob(
            operators=(
                SimulatedOperator(name="source", capacity=Linear(10 * RATE)),
                SimulatedOperator(name="work", capacity=Linear(RATE), state_bytes_per_record=10),
            ),
            edges=chain("source", "work"),
        )
        return SimulatedEngine(job, {"source": lambda times_s: np.full_like(times_s, 1.5 * RATE)})
