"""A simulated job under a policy, cycle by cycle: what every reproduction on the simulator is made of."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from sluice.control.decider import Decider
from sluice.control.guards import Guards
from sluice.control.loop import Loop
from sluice.errors import SluiceError
from sluice.journal.file import MemoryJournal
from sluice.journal.results import CycleReport
from sluice.lab.bench.local import prepare_worker
from sluice.lab.reproduce.base import Report
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


Item = TypeVar("Item")
Found = TypeVar("Found")


def in_parallel(function: Callable[[Item], Found], items: Sequence[Item], report: Report) -> list[Found]:
    """In the order of the items, one process per core; function and items must survive being sent there."""
    processes = min(os.cpu_count() or 1, len(items))
    if processes <= 1:
        return [function(item) for item in items]
    # a forked child would inherit locks of numba's and BLAS' threads in whatever state they are
    context = multiprocessing.get_context("spawn")
    found = []
    with ProcessPoolExecutor(processes, context, prepare_worker) as pool:
        for number, result in enumerate(pool.map(function, items), start=1):
            found.append(result)
            report(f"{number} of {len(items)} runs")
    return found
