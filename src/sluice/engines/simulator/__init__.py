"""A deterministic simulator of a streaming job, far faster than life."""

from sluice.engines.simulator.capacity import Capacity, Linear, PowerLaw, Table
from sluice.engines.simulator.engine import SimulatedEngine
from sluice.engines.simulator.job import RateCurve, SimulatedJob, SimulatedOperator, SimulatorSettings, chain

__all__ = [
    "Capacity",
    "Linear",
    "PowerLaw",
    "RateCurve",
    "SimulatedEngine",
    "SimulatedJob",
    "SimulatedOperator",
    "SimulatorSettings",
    "Table",
    "chain",
]
