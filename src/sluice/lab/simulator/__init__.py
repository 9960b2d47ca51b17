"""A deterministic simulator of a streaming job, far faster than life."""

from sluice.lab.simulator.capacity import Capacity, CapacityTable, Linear, PowerLaw
from sluice.lab.simulator.engine import SimulatedEngine
from sluice.lab.simulator.job import RateCurve, SimulatedJob, SimulatedOperator, SimulatorSettings, chain

__all__ = [
    "Capacity",
    "CapacityTable",
    "Linear",
    "PowerLaw",
    "RateCurve",
    "SimulatedEngine",
    "SimulatedJob",
    "SimulatedOperator",
    "SimulatorSettings",
    "chain",
]
