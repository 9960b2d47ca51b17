"""A deterministic simulator of a streaming job, far faster than life."""

from sluice.lab.simulator.capacity import Capacity, Linear, PowerLaw, Table
from sluice.lab.simulator.engine import SimulatedEngine
from sluice.lab.simulator.job import RateCurve, SimulatedJob, SimulatedOperator, SimulatorSettings, chain

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
