"""Dragster's jobs and methods on the simulator, and what its tables count in a run.

As in the paper: a slot every ten minutes, a redeployment of 30 s, at most ten tasks per operator. Its Dhalion adds or
removes one task of an operator per slot, so ours is held to that here. A phase has converged when its configuration
changes no more and carries the load within 10 %; a phase that has not has no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sluice.control.guards import Guards
from sluice.journal.records import Choice
from sluice.journal.results import CycleReport
from sluice.lab.pipelines import PipelineDefinition, pipelines
from sluice.lab.pipelines.calibration import flink_like, true_rate
from sluice.lab.reproduce.simulated import play, reconfigured
from sluice.lab.simulator import Linear, PowerLaw, SimulatedJob, SimulatedOperator, chain
from sluice.lab.workloads import duration_s, rate_curve, workloads
from sluice.model import Edge, Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, Policy, policies

SLOT_S = 600.0
MOST_TASKS = 10
NEAR_OPTIMUM = 0.9
METHODS = ("Dhalion", "saddle point", "gradient")


@dataclass(frozen=True)
class OneTaskAtATime:
    """Moves every operator at most one task towards the inner policy's recommendation, while slots are left."""

    inner: Policy
    slots: int | None = None

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        decision, kept = self.inner.decide(observation, memory)
        now = observation.parallelism
        counts = dict(now)
        for name in observation.topology.order:
            step = int(np.sign(decision.parallelism.get(name, now[name]) - now[name]))
            if step > 0 and self.slots is not None and sum(counts.values()) >= self.slots:
                continue
            counts[name] = min(now[name] + step, MOST_TASKS)
        return decision.model_copy(update={"parallelism": counts}), kept


@dataclass(frozen=True)
class Application:
    """A job of figure 5 whose rates the paper does not print: so many tuned operators behind an ample source."""

    capacities: Mapping[str, Linear | PowerLaw]
    peak_rate: float = 100_000.0
    sources: tuple[str, ...] = ("source",)

    def source_shares(self) -> Mapping[str, float]:
        return dict.fromkeys(self.sources, 1.0 / len(self.sources))

    def simulated(self) -> SimulatedJob:
        first = next(iter(self.capacities))
        ample = [SimulatedOperator(name=name, capacity=Linear(4 * self.peak_rate)) for name in self.sources]
        tuned = [SimulatedOperator(name=name, capacity=capacity) for name, capacity in self.capacities.items()]
        return SimulatedJob(
            operators=(*ample, *tuned),
            edges=(*(Edge(source=name, target=first) for name in self.sources), *chain(*self.capacities)),
            settings=flink_like(),
        )


APPLICATIONS: Mapping[str, Application] = {
    "Group": Application({"group": PowerLaw(true_rate(25_000), 0.9)}),
    "AsyncIO": Application({"lookup": Linear(true_rate(17_000))}),
    "Join": Application({"join": PowerLaw(true_rate(25_000), 0.85)}, sources=("left", "right")),
    "Window": Application({"window": PowerLaw(true_rate(25_000), 0.9), "aggregate": Linear(true_rate(20_000))}),
    "WordCount": Application({"map": PowerLaw(true_rate(22_000), 0.95), "shuffle": PowerLaw(true_rate(25_000), 0.9)}),
}
"""Figure 5: three applications with one operator, two with two; six to eight tasks carry their highest load."""
ONE_OPERATOR, TWO_OPERATORS = ("Group", "AsyncIO", "Join"), ("Window", "WordCount")


@dataclass(frozen=True)
class Run:
    """What determines a run; `job` is a built-in pipeline or an application of figure 5."""

    method: str
    job: str
    workload: str
    seed: int
    budget: int | None = None

    def definition(self) -> PipelineDefinition:
        return APPLICATIONS.get(self.job) or pipelines.create(self.job)

    def policy(self) -> Policy:
        if self.method == "Dhalion":
            return OneTaskAtATime(policies.create("dhalion", {"scale_down_use": 0.8}), self.budget)
        name = "saddle" if self.method == "saddle point" else "gradient"
        return policies.create("dragster", {"method": name, "max_parallelism": MOST_TASKS, "budget": self.budget})


@dataclass(frozen=True)
class Phase:
    """One stretch of constant load. `time_min` is null if it did not converge."""

    time_min: float | None
    processed: float
    offered: float
    slot_seconds: float
    before_rate: float
    """Records/s processed until it converged, or all the time."""
    throughput: tuple[float, ...] = field(default=(), repr=False)

    @property
    def share(self) -> float:
        return self.processed / self.offered

    @property
    def cost(self) -> float:
        """Slot-seconds per record."""
        return self.slot_seconds / self.processed


@dataclass(frozen=True)
class Ran:
    """A run phase by phase, and slot by slot what it missed by the true curves."""

    phases: tuple[Phase, ...]
    regret: tuple[float, ...]
    shortfall: tuple[float, ...]
    most_slots: int


def run(asked: Run) -> Ran:
    definition = asked.definition()
    chosen = Choice.parse_text(asked.workload)
    workload = workloads.create(chosen.name, chosen.settings)
    curves = {
        source: rate_curve(workload, peak_rate=definition.peak_rate * share, seed=asked.seed)
        for source, share in definition.source_shares().items()
    }
    job = paper_job(definition)
    cycles = play(
        job,
        curves,
        asked.policy(),
        duration_s=duration_s(workload),
        interval_s=SLOT_S,
        guards=Guards(max_parallelism=MOST_TASKS),
        seed=asked.seed,
    )
    phases = max(1, int(chosen.settings.get("phases", 1)))
    parts = np.array_split(np.arange(len(cycles)), phases)
    missed = [true_shortage(job, cycle, asked.budget) for cycle in cycles]
    return Ran(
        phases=tuple(phase([cycles[i] for i in part]) for part in parts),
        regret=tuple(regret for regret, _ in missed),
        shortfall=tuple(shortfall for _, shortfall in missed),
        most_slots=max(found.cycle.target.slots for found in cycles),
    )


def paper_job(pipeline: PipelineDefinition) -> SimulatedJob:
    job = pipeline.simulated()
    settings = replace(job.settings, rescale="job", downtime_s=30.0, state_bandwidth_bytes_per_s=1e12)
    return replace(job, settings=settings, initial_parallelism={})


def phase(cycles: Sequence[CycleReport]) -> Phase:
    read = [sum(m.input_rate or 0.0 for m in _sources(cycle)) * SLOT_S for cycle in cycles]
    came = [sum(m.arrival_rate or 0.0 for m in _sources(cycle)) * SLOT_S for cycle in cycles]
    time_min = convergence_min(cycles)
    before = len(cycles) if time_min is None else max(1, round(time_min * 60.0 / SLOT_S))
    return Phase(
        time_min=time_min,
        processed=sum(read),
        offered=sum(came),
        slot_seconds=SLOT_S * sum(sum(cycle.cycle.observation.parallelism.values()) for cycle in cycles),
        before_rate=sum(read[:before]) / (before * SLOT_S),
        throughput=tuple(value / SLOT_S for value in read),
    )


def _sources(cycle: CycleReport) -> list[OperatorMetrics]:
    return [m for m in cycle.cycle.observation.operators.values() if m.arrival_rate is not None]


def convergence_min(cycles: Sequence[CycleReport]) -> float | None:
    """Minutes from the start of the phase to its last reconfiguration; null if that does not carry the load."""
    last = max((i + 1 for i, cycle in enumerate(cycles) if reconfigured(cycle)), default=0)
    settled = [metrics for cycle in cycles[last:] for metrics in _sources(cycle)]
    arrived = sum(metrics.arrival_rate or 0.0 for metrics in settled)
    if not arrived or sum(metrics.input_rate or 0.0 for metrics in settled) < NEAR_OPTIMUM * arrived:
        return None
    return last * SLOT_S / 60.0


def true_shortage(job: SimulatedJob, cycle: CycleReport, budget: int | None) -> tuple[float, float]:
    """Records of one slot: regret (eq. 10) and fit without what is to spare (eq. 12), by the true curves.

    Regret is what the best configuration of at most ten tasks each, within the budget, would have carried beyond what
    the present one can; the job must be a chain or have ample sources.
    """
    seen = cycle.cycle.observation
    load = sum(metrics.arrival_rate or 0.0 for metrics in _sources(cycle))
    if not load:
        return 0.0, 0.0
    demands = demand(job, {name: m.arrival_rate or 0.0 for name, m in seen.operators.items() if m.arrival_rate})
    shares = {op.name: op.capacity(seen.parallelism[op.name]) / demands[op.name] for op in job.operators}
    best = best_share(job, demands, budget)
    regret = max(0.0, best - min(1.0, *shares.values())) * load * SLOT_S
    lacking = sum(max(0.0, 1.0 - share) * demands[name] for name, share in shares.items())
    return regret, lacking * SLOT_S


def demand(job: SimulatedJob, arrivals: Mapping[str, float]) -> dict[str, float]:
    """Input rate of every operator if nothing falls short."""
    rates = {operator.name: arrivals.get(operator.name, 0.0) for operator in job.operators}
    by_name = {operator.name: operator for operator in job.operators}
    for name in job.graph.topology.order:
        for edge in job.edges:
            if edge.source == name:
                rates[edge.target] += rates[name] * by_name[name].selectivity
    return {name: max(rate, 1e-9) for name, rate in rates.items()}


def best_share(job: SimulatedJob, demands: Mapping[str, float], budget: int | None) -> float:
    """Of the load, that the best split of the budget over a chain of operators carries."""
    counts = {op.name: MOST_TASKS if budget is None else 1 for op in job.operators}
    capacity = {op.name: op.capacity for op in job.operators}

    def share(name: str) -> float:
        return capacity[name](counts[name]) / demands[name]

    while budget is not None and sum(counts.values()) < budget:
        open_ones = [name for name, count in counts.items() if count < MOST_TASKS]
        if not open_ones:
            break
        counts[min(open_ones, key=share)] += 1
    return min(1.0, *(share(name) for name in counts))


def growth_exponent(summed: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Of t in `sum ~ t^exponent`, without the first twentieth."""
    slots = np.arange(1, summed.size + 1)
    used = (slots > summed.size // 20) & (summed > 0)
    if used.sum() < 2:
        return 0.0
    return float(np.polyfit(np.log(slots[used]), np.log(summed[used]), 1)[0])
