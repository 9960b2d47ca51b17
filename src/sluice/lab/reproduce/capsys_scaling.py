"""DS2 with different placements under changing load (CAPSys 6.4): does it ask for the right slots, and how often?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sluice.control.decider import Decider
from sluice.control.guards import Guards, Situation
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.journal.results import CycleReport
from sluice.lab.reproduce.capsys_jobs import HEADROOM, StudiedQuery
from sluice.lab.reproduce.capsys_runs import MET, must_place, outcome, request, settings
from sluice.lab.reproduce.simulated import reconfigured
from sluice.lab.simulator import RateCurve, SimulatedEngine
from sluice.model import Cluster, Observation, Target
from sluice.placement import placers
from sluice.placement.planner import PlacementPlanner
from sluice.protocol import EMPTY_MEMORY, policies

ACTIVATION_S, INTERVAL_S = 90.0, 5.0
STEP_S, PHASE_S = 600.0, 1200.0
LAST_S = 240.0
"""A step or phase is judged by what happens in its last minutes."""


@dataclass(frozen=True)
class Step:
    """What came of one rate change."""

    throughput_share: float
    slots: int
    slots_needed: int

    @property
    def meets_target(self) -> bool:
        return self.throughput_share >= MET

    @property
    def accurate(self) -> bool:
        return self.slots <= self.slots_needed


def stepped(rates: Sequence[float], step_s: float) -> RateCurve:
    def curve(times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.asarray(rates)[np.clip((times_s / step_s).astype(np.int64), 0, len(rates) - 1)]

    return curve


def planner(query: StudiedQuery, cluster: Cluster, strategy: str, seed: int) -> PlacementPlanner:
    placer = placers.create(strategy, {} if strategy == "caps" else {"seed": seed})
    return PlacementPlanner(placer=placer, cluster=cluster, units=query.units())


def accuracy(query: StudiedQuery, cluster: Cluster, rates: Sequence[float], strategy: str, seed: int) -> list[Step]:
    """One DS2 decision after every rate change, starting from the best plan for the first rate (section 6.4.1)."""
    parallelism = query.parallelism(rates[0])
    best = must_place(placers.create("caps"), request(query, cluster, rates[0], parallelism)).placement
    engine = SimulatedEngine(query.job(settings(cluster)), {s: stepped(rates, STEP_S) for s in query.shares}, seed)
    engine.start(Target(parallelism=parallelism, placement=best))
    place = planner(query, cluster, strategy, seed)
    policy = policies.create("ds2", {"over_provisioning": HEADROOM})
    guards = Guards(max_slots=cluster.slots)
    engine.clock.sleep_s(STEP_S)
    engine.observe()
    steps, placement = [], best
    for rate in rates[1:]:
        engine.clock.sleep_s(ACTIVATION_S)
        seen = engine.observe()
        recommendation, _ = policy.decide(seen, EMPTY_MEMORY)
        situation = Situation(target=Target(parallelism=seen.parallelism), graph=engine.graph, observation=seen)
        counts = guards.apply(recommendation, situation).target.parallelism
        placement, _ = place(engine.graph, counts, seen, placement)
        engine.reconcile(Target(parallelism=counts, placement=placement))
        engine.clock.sleep_s(STEP_S - ACTIVATION_S - LAST_S)
        engine.observe()
        engine.clock.sleep_s(LAST_S)
        steps.append(_step(query, engine.observe(), rate))
    engine.stop()
    return steps


def _step(query: StudiedQuery, seen: Observation, rate: float) -> Step:
    return Step(
        throughput_share=outcome(seen, tuple(query.shares)).throughput_share,
        slots=sum(seen.parallelism.values()),
        slots_needed=sum(query.parallelism(rate).values()),
    )


@dataclass(frozen=True)
class Timeline:
    """A whole run: decisions that changed something, and one judged step per phase."""

    decisions: int
    phases: list[Step]
    reports: tuple[CycleReport, ...]


def convergence(query: StudiedQuery, cluster: Cluster, rates: Sequence[float], strategy: str, seed: int) -> Timeline:
    """The load alternates; DS2 decides when to act, starting from one instance each (section 6.4.2)."""
    engine = SimulatedEngine(query.job(settings(cluster)), {s: stepped(rates, PHASE_S) for s in query.shares}, seed)
    windows = round(ACTIVATION_S / INTERVAL_S)
    policy = policies.create("ds2", {"over_provisioning": HEADROOM, "warm_up": 6, "activation": windows})
    journal = MemoryJournal()
    Loop(
        engine=engine,
        decider=Decider(policy),
        journal=journal,
        guards=Guards(max_slots=cluster.slots),
        planner=planner(query, cluster, strategy, seed),
    ).run(
        Target(parallelism=dict.fromkeys(engine.graph.names, 1)),
        duration_s=PHASE_S * len(rates),
        interval_s=INTERVAL_S,
    )
    reports = journal.reports()
    return Timeline(
        decisions=sum(reconfigured(report) for report in reports),
        phases=[_phase(query, reports, number, rate) for number, rate in enumerate(rates)],
        reports=reports,
    )


def _phase(query: StudiedQuery, reports: Sequence[CycleReport], number: int, rate: float) -> Step:
    end_s = (number + 1) * PHASE_S
    last = [report.cycle for report in reports if end_s - LAST_S < report.cycle.time_s <= end_s]
    read = [sum(cycle.observation.operators[source].input_rate or 0.0 for source in query.shares) for cycle in last]
    return Step(
        throughput_share=min(float(np.mean(read)) / rate, 1.0),
        slots=last[-1].target.slots,
        slots_needed=sum(query.parallelism(rate).values()),
    )
