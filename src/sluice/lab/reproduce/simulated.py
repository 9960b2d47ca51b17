"""A simulated job under a policy, cycle by cycle: what every reproduction on the simulator is made of."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.errors import SluiceError
from sluice.journal.file import MemoryJournal
from sluice.journal.results import CycleReport
from sluice.lab.simulator import SimulatedEngine, SimulatedJob
from sluice.lab.simulator.job import RateCurve
from sluice.model import Target
from sluice.protocol import Policy


def play(
    job: SimulatedJob,
    arrivals: Mapping[str, RateCurve],
    policy: Policy,
    *,
    duration_s: float,
    interval_s: float,
    guards: Guards,
    seed: int,
) -> tuple[CycleReport, ...]:
    """Every cycle. A policy that fails is an error here: a held cycle would pass for a decision."""
    journal = MemoryJournal()
    initial = {name: job.initial_parallelism.get(name, 1) for name in job.graph.names}
    loop = Loop(engine=SimulatedEngine(job, arrivals, seed), decider=Decider(policy), journal=journal, guards=guards)
    loop.run(Target(parallelism=initial), duration_s=duration_s, interval_s=interval_s)
    reports = journal.reports()
    problem = next((report.cycle.problem for report in reports if report.cycle.problem), None)
    if problem:
        raise SluiceError(problem)
    return reports


def reconfigured(report: CycleReport) -> bool:
    return report.result.is_action and bool(report.result.changed)
