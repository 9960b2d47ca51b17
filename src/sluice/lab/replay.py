"""What other policies would have made of a past run, from its journal alone.

Two answers. *Recommended*: every policy is asked about the windows that were recorded, one after the other; what it
says is exact, but those windows show the job as it was really scaled. *Estimated*: a simulated job with the capacities,
selectivities, downtimes and loads found in the journal is scaled by the policy, window for window. The run itself is
estimated the same way, so how far such an estimate is off can be seen beside what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from sluice.control.decider import Decider
from sluice.control.guards import Guards, Situation
from sluice.control.loop import Loop
from sluice.dataflow.job_model import JobModel
from sluice.dataflow.rates import source_arrival_rate
from sluice.errors import BadInputError
from sluice.journal.file import MemoryJournal
from sluice.journal.results import CycleReport, RunLog
from sluice.lab.simulator import SimulatedEngine, SimulatedJob, SimulatedOperator, SimulatorSettings
from sluice.lab.simulator.state import Floats
from sluice.lab.summary import Summary, summarise
from sluice.model import Edge, Graph, Observation, Operator, Recommendation, Target
from sluice.model.base import Frozen
from sluice.protocol import EMPTY_MEMORY, Memory, Policy
from sluice.registry import build

AMPLE = 1e12
"""Records/s of an operator whose capacity the journal does not show: never the bottleneck."""
DEFAULT_OBJECTIVE_S = 30.0


class Advice(Frozen):
    """One window: what was in force after it, and what a policy would have recommended, both after guards."""

    time_s: float
    in_force: dict[str, int]
    recommended: dict[str, int]
    reason: str
    problem: str | None = None


class Figures(Frozen):
    """Of a run, measured or estimated: `late` is the share of time above the objective, null where unknown."""

    slot_hours: float
    late: float | None
    late_s: float | None
    actions: int


class Replay(Frozen):
    """One policy on one past run."""

    policy: str
    advice: tuple[Advice, ...]
    estimate: Figures

    @property
    def agreed(self) -> int:
        return sum(one.recommended == one.in_force for one in self.advice)


class PastRun(Frozen):
    """A past run with what was measured, the same as the estimate has it, and what the estimate does not know."""

    policy: str
    windows: int
    objective_s: float
    measured: Figures
    estimate: Figures
    unknown: tuple[str, ...]
    replays: tuple[Replay, ...]


@dataclass(frozen=True)
class Recorded:
    """Follows the targets of a journal, whatever it observes."""

    steps: tuple[tuple[float, dict[str, int]], ...]

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        due = [counts for time_s, counts in self.steps if time_s <= observation.time_s + 1e-6]
        counts = {name: count for name, count in (due[-1] if due else {}).items() if name in observation.operators}
        if not counts or counts == observation.parallelism:
            return Recommendation.hold(f"as recorded at {observation.time_s:g} s"), memory
        return Recommendation(parallelism=counts, reason=f"as recorded at {observation.time_s:g} s"), memory


def objective_of(run: RunLog, given_s: float | None = None) -> float:
    """What is late in a run: as given, else as its journal says."""
    if given_s is not None and not 0 < given_s < math.inf:
        raise BadInputError(f"the objective must be above 0 s, got {given_s:g}")
    return given_s or run.header.slo_s or DEFAULT_OBJECTIVE_S


def replay(run: RunLog, policies: Mapping[str, Policy], objective_s: float | None = None) -> PastRun:
    """`objective_s` where the journal has none, or for another one than it had."""
    if not run.reports:
        raise BadInputError("the run has no cycle to replay")
    objective_s = objective_of(run, objective_s)
    past = _Past.of(run)
    steps = tuple((cycle.time_s, dict(cycle.target.parallelism)) for cycle in run.cycles)
    return PastRun(
        policy=run.header.policy.label,
        windows=len(run.reports),
        objective_s=objective_s,
        measured=_figures(run.reports, objective_s, shared=run.is_shared),
        estimate=past.estimate(Recorded(steps), Guards(), objective_s),
        unknown=past.unknown,
        replays=tuple(
            Replay(
                policy=label,
                advice=tuple(advise(run, policy)),
                estimate=past.estimate(policy, _guards(run), objective_s),
            )
            for label, policy in policies.items()
        ),
    )


def advise(run: RunLog, policy: Policy) -> list[Advice]:
    """What a policy says to the windows as they were, its memory carried on; guards are the run's, less cooldown."""
    decider, guards = Decider(policy), _guards(run)
    decider.bound(guards.most_instances(len(run.cycles[0].observation.operators)))
    memory: Memory = EMPTY_MEMORY
    found = []
    for cycle in run.cycles:
        answer = decider.ask(cycle.observation, memory)
        memory = answer.memory
        graph = _graph(cycle.observation, run)
        now = Target(parallelism=cycle.observation.parallelism)
        target = guards.apply(
            answer.recommendation, Situation(target=now, graph=graph, observation=cycle.observation)
        ).target
        found.append(
            Advice(
                time_s=cycle.time_s,
                in_force=cycle.target.parallelism,
                recommended=target.parallelism,
                reason=answer.recommendation.reason,
                problem=answer.problem,
            )
        )
    return found


def _guards(run: RunLog) -> Guards:
    known = set(Guards.__dataclass_fields__)
    return build(Guards, {key: value for key, value in run.header.guards.items() if key in known}, "guards")


def _graph(observation: Observation, run: RunLog) -> Graph:
    """As in the header; that of an application follows from what was observed."""
    if run.header.graph is not None and set(run.header.graph.names) == observation.operators.keys():
        return run.header.graph
    return Graph(
        operators=tuple(Operator(name=name) for name in observation.operators),
        edges=tuple(Edge(source=a, target=b) for a, b in observation.edges),
        shared=run.is_shared,
    )


class _SharingEngine(SimulatedEngine):
    """The simulator for operators that have one number of instances, as the queries of an application do."""

    @property
    def graph(self) -> Graph:
        return super().graph.model_copy(update={"shared": True})


@dataclass(frozen=True)
class _Past:
    """What the journal tells about the job: enough to run it again."""

    run: RunLog
    job: SimulatedJob
    loads: Mapping[str, Callable[[Floats], Floats]]
    unknown: tuple[str, ...]

    @staticmethod
    def of(run: RunLog) -> _Past:
        last = run.cycles[-1].observation
        names = tuple(last.operators)
        seen = [cycle.observation for cycle in run.cycles if cycle.observation.operators.keys() == set(names)]
        memory: Memory = EMPTY_MEMORY
        for observation in seen:
            model = JobModel.learned(observation, memory)
            memory = model.to_memory()
        if not model.curves:
            raise BadInputError("the journal shows no operator's capacity (input and busy share): nothing to estimate")
        unknown = tuple(name for name in names if name not in model.curves)
        settings = SimulatorSettings(
            rescale="job" if run.header.engine == "sim" else "operators",
            downtime_s=_mean([report.result.downtime_s for report in run.reports if report.result.is_action]),
            state_bandwidth_bytes_per_s=AMPLE,
            instance_start_s=_mean(_starts_s(run.reports)),
            # policies that compute with the busy share must be misled by it as they were
            busy_ceiling=min(1.0, _mean(list(model.full.values())) or 1.0),
        )
        operators, edges = _parts(model, last)
        job = SimulatedJob(operators=operators, edges=edges, settings=settings, initial_parallelism=seen[0].parallelism)
        times_s = np.array([observation.time_s for observation in seen])
        loads = {name: _load(times_s, seen, name) for name in last.topology.sources}
        return _Past(run, job, loads, unknown)

    def estimate(self, policy: Policy, guards: Guards, objective_s: float) -> Figures:
        kind = _SharingEngine if self.run.is_shared else SimulatedEngine
        engine = kind(self.job, self.loads)
        journal = MemoryJournal()
        Loop(engine=engine, decider=Decider(policy), journal=journal, guards=guards).run(
            Target(parallelism=dict(self.job.initial_parallelism)),
            duration_s=self.run.cycles[-1].time_s,
            interval_s=self.run.header.interval_s,
        )
        return _figures(journal.reports(), objective_s, shared=self.run.is_shared)


def _parts(model: JobModel, last: Observation) -> tuple[tuple[SimulatedOperator, ...], tuple[Edge, ...]]:
    operators, edges = [], []
    for name in last.operators:
        to = {end: out / into for end, (out, into, _) in model.flows.get(name, {}).items() if into > 0}
        most = max(to.values(), default=0.0)
        operators.append(
            SimulatedOperator(name=name, capacity=_capacity(model, name), selectivity=min(most, AMPLE) or 1.0)
        )
        for end in last.topology.successors[name]:
            share = to.get(end, 0.0) / most if most else 1.0
            edges.append(Edge(source=name, target=end, share=max(share, 1e-6)))
    return tuple(operators), tuple(edges)


def _capacity(model: JobModel, name: str) -> Callable[[int], float]:
    curve = model.curves.get(name)
    if curve is None:
        return lambda _: AMPLE
    return lambda instances: min(AMPLE, curve.rate(instances) * model.trust)


def _load(times_s: Floats, seen: Sequence[Observation], name: str) -> Callable[[Floats], Floats]:
    """The arrival rate of every window until the end of it; one that is unknown goes on as before."""
    rates: list[float] = []
    known = [source_arrival_rate(observation.operators[name]) for observation in seen]
    if all(rate is None for rate in known):
        raise BadInputError(
            f"the journal shows no load of {name} (arrivals, or input and growth of the lag): nothing to estimate"
        )
    for rate in known:
        rates.append(rate if rate is not None else rates[-1] if rates else 0.0)
    values = np.array(rates)
    return lambda at_s: values[np.clip(np.searchsorted(times_s, at_s), 0, values.size - 1)]


def _starts_s(reports: Sequence[CycleReport]) -> list[float]:
    """How long requested instances took to come, of every action that had to wait for some."""
    return [
        report.outcomes[-1].time_s - report.outcomes[0].time_s
        for report in reports
        if len(report.outcomes) > 1 and report.outcomes[-1].status == "done"
    ]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _figures(reports: Sequence[CycleReport], objective_s: float, *, shared: bool) -> Figures:
    summary: Summary = summarise(reports, None, objective_s, shared=shared)
    knows = any(report.cycle.observation.latency_samples_s for report in reports)
    length_s = math.fsum(report.cycle.observation.interval_s for report in reports)
    late = summary.slo_violation_ratio if knows else None
    return Figures(
        slot_hours=summary.slot_seconds / 3600,
        late=late,
        late_s=None if late is None else late * length_s,
        actions=summary.rescales,
    )


__all__ = ["Advice", "Figures", "PastRun", "Replay", "advise", "objective_of", "replay"]
