"""Four operators to size, as in the QEScalor paper: two bound by the CPU, two by CPU and memory.

The paper does not publish its operators. These cover the shapes it describes: rates that stop growing when an
instance has more cores than threads, gradually or at once, and rates that depend on how much of the state fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.simulator import Linear, SimulatedOperator, SimulatorSettings
from sluice.lab.simulator.sampling import SimulatedSampling
from sluice.learning.instance_sizes import ResourceCurve
from sluice.learning.sampling import growing_sizes
from sluice.model import InstanceSize

MEMORY_PER_CORE_MB = 2048.0
NOISE = SimulatorSettings(noise=0.06)
"""From tick to tick; a window of ten ticks varies by about 2 %."""


@dataclass(frozen=True)
class SizedOperator:
    """An operator with a known response to resources."""

    name: str
    kind: str
    curve: ResourceCurve

    def simulated(self) -> SimulatedOperator:
        return SimulatedOperator(name=self.name, capacity=Linear(self.curve.rate_per_core), speedup=self.curve.speedup)

    def target(self, seed: int) -> SimulatedSampling:
        return SimulatedSampling(self.simulated(), settings=NOISE, seed=seed)


OPERATORS = (
    SizedOperator("CO1", "cpu", ResourceCurve(rate_per_core=1000, threads=2.0, contention=0.03)),
    SizedOperator("CO2", "cpu", ResourceCurve(rate_per_core=1000, threads=3.0, contention=0.15, coherence=0.02)),
    SizedOperator(
        "CMO1",
        "cpu and memory",
        ResourceCurve(
            rate_per_core=1000, threads=2.4, contention=0.05, overhead_mb=200, working_set_mb=3500, miss_penalty=1.0
        ),
    ),
    SizedOperator(
        "CMO2",
        "cpu and memory",
        ResourceCurve(
            rate_per_core=1000, threads=2.8, contention=0.1, overhead_mb=400, working_set_mb=2400, miss_penalty=2.0
        ),
    ),
)


PAPER_SIZES = tuple(
    InstanceSize(name=name, cpu_cores=cores, memory_mb=memory_mb, price_per_hour=round(0.006 + 0.04 * cores, 3))
    for name, cores, memory_mb in (("r1", 0.6, 33.2), ("r2", 1.2, 33.3), ("r3", 1.8, 33.5), ("r4", 2.4, 33.8))
)
"""Section 3.2; the paper prints no prices, these follow the rule of the example table."""
PAPER_CMO1 = SizedOperator(
    "CMO1",
    "cpu and memory",
    ResourceCurve(
        rate_per_core=1000, threads=2.4, contention=0.05, overhead_mb=32.95, working_set_mb=0.85, miss_penalty=1.0
    ),
)
"""CMO1 with its memory scaled to the paper's sizes: r1 holds 29 % of the state, r4 all of it, as with 2 GB per core."""


def papers_sampled_sizes() -> tuple[InstanceSize, ...]:
    """0.4 to 3.5 cores in steps of a tenth, memory along the paper's four sizes."""
    known = np.array([(size.cpu_cores, size.memory_mb) for size in PAPER_SIZES])
    return tuple(
        size.model_copy(update={"memory_mb": float(np.interp(size.cpu_cores, known[:, 0], known[:, 1]))})
        for size in sampled_sizes()
    )


def sampled_sizes() -> tuple[InstanceSize, ...]:
    """0.4 to 3.5 cores in steps of a tenth, 2 GB of memory per core: 32 sizes."""
    return growing_sizes(count=32, first_cores=0.4, step_cores=0.1, memory_per_core_mb=MEMORY_PER_CORE_MB)
