"""A simulated job under a policy, cycle by cycle: what every reproduction on the simulator is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.errors import SluiceError
from sluice.journal.file import Entry, MemoryJournal
from sluice.lab.simulator import SimulatedEngine, SimulatedJob
from sluice.lab.simulator.job import RateCurve
from sluice.model import Target
from sluice.policy import Policy


def play(
    job: SimulatedJob,
    arrivals: Mapping[str, RateCurve],
    policy: Policy,
    *,
    duration_s: float,
    interval_s: float,
    guards: Guards,
    seed: int,
) -> list[Entry]:
    """Every cycle's journal entry. A policy that fails is an error here: a held cycle would pass for a decision."""
    journal = MemoryJournal()
    initial = {name: job.initial_parallelism.get(name, 1) for name in job.graph.names}
    loop = Loop(engine=SimulatedEngine(job, arrivals, seed), decider=Decider(policy), journal=journal, guards=guards)
    loop.run(Target(parallelism=initial), duration_s=duration_s, interval_s=interval_s)
    cycles = [entry for entry in journal.entries if entry["kind"] == "cycle"]
    problem = next((entry["problem"] for entry in cycles if entry["problem"]), None)
    if problem:
        raise SluiceError(problem)
    return cycles


def reconfigured(cycle: Mapping[str, Any]) -> bool:
    return bool(cycle["applied"] and cycle["applied"]["changed"])
