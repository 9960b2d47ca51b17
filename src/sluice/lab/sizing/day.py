"""A day of load, planned by QCESA with all sizes and by CBA with each size alone (QEScalor paper, figures 2 and 3).

Both are the policy `qescalor` with the same samples, forecasts, margins and scaling costs; they differ in the price
table only. The week before is known to the forecaster; the day itself strays from it, and may have a surprise in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from sluice.control.decider import Decider
from sluice.control.loop import Loop
from sluice.journal.file import MemoryJournal
from sluice.lab.simulator import SimulatedEngine, SimulatedJob, SimulatorSettings
from sluice.lab.sizing.operators import PAPER_SIZES, SizedOperator, papers_sampled_sizes, sampled_sizes
from sluice.lab.sizing.samplers import SAMPLERS
from sluice.lab.summary import Summary, summarise
from sluice.learning.forecast import EpochState
from sluice.learning.instance_sizes import EXAMPLE
from sluice.learning.qcesa import ScalingCosts
from sluice.learning.sampled_sizes import SampledSizes
from sluice.learning.sampling import Sample
from sluice.model import InstanceSize, Observation, Recommendation, Target
from sluice.policies.qescalor import QEScalor
from sluice.protocol import Memory, Policy

DAY_S = 86_400.0
LOAD_STEP_S = 300.0
SLO_S = 30.0
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class DailyLoad:
    """Records/s every five minutes, for some days and one more.

    A night valley, a morning and an evening peak; errors that last (autoregressive, an hour or so); days that are
    busier than others; and on the last day a surprise: `surprise` more than usual for two hours after noon.
    """

    peak_rate: float = 14_000.0
    days: int = 8
    noise: float = 0.1
    surprise: float = 0.5
    seed: int = 0

    def values(self) -> Floats:
        per_day = int(DAY_S / LOAD_STEP_S)
        steps = np.arange(per_day * self.days)
        hour = steps * LOAD_STEP_S / 3600 % 24
        usual = 0.12 + 0.5 * np.exp(-(((hour - 10) / 3) ** 2)) + 0.85 * np.exp(-(((hour - 20) / 2.5) ** 2))
        chance = np.random.default_rng(self.seed)
        error = np.zeros(len(steps))
        for step in range(1, len(steps)):
            error[step] = 0.9 * error[step - 1] + math.sqrt(1 - 0.9**2) * self.noise * chance.standard_normal()
        busier = np.repeat(np.exp(0.05 * chance.standard_normal(self.days)), per_day)
        load = self.peak_rate * usual * busier * np.exp(error)
        last = steps >= per_day * (self.days - 1)
        load[last & (hour >= 13) & (hour < 15)] *= 1 + self.surprise
        return np.asarray(load, dtype=float)


@dataclass(frozen=True, kw_only=True)
class DaySettings:
    """What all planners share."""

    epoch_s: float = 900.0
    horizon: int = 8
    interval_s: float = 60.0
    instance_start_s: float = 45.0
    startup_cost_s: float = 180.0
    shutdown_cost_s: float = 30.0
    load: DailyLoad = field(default_factory=DailyLoad)
    offered: tuple[InstanceSize, ...] = EXAMPLE

    def costs(self) -> ScalingCosts:
        per_second = next(size for size in EXAMPLE if size.cpu_cores == 1).price_per_hour / 3600
        return ScalingCosts(startup=self.startup_cost_s * per_second, shutdown=self.shutdown_cost_s * per_second)


@dataclass(frozen=True)
class DayRun:
    """What one planner made of the day."""

    planner: str
    summary: Summary
    time_s: list[float]
    load: list[float]
    capacity: list[float]
    latency_s: list[float]
    cost: list[float]
    forecast_error: float
    scalings: int

    @property
    def total_cost(self) -> float:
        return self.cost[-1]


@dataclass(frozen=True)
class PolicyWithMemory:
    """A policy that comes with a memory of earlier days."""

    policy: Policy
    memory: Memory

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        return self.policy.decide(observation, memory or self.memory)


def dsa_samples(operator: SizedOperator, settings: DaySettings) -> tuple[Sample, ...]:
    """DSA along sizes like those on offer: nobody looks at the true curve."""
    along = papers_sampled_sizes() if settings.offered == PAPER_SIZES else sampled_sizes()
    return SAMPLERS["DSA"].sample(operator.target(settings.load.seed), along)


def run_day(
    operator: SizedOperator,
    settings: DaySettings,
    *,
    sizes: Sequence[InstanceSize] | None = None,
    planner: str = "QCESA",
    samples: tuple[Sample, ...] = (),
) -> DayRun:
    """The last day of the load on the simulator, the days before in the policy's memory."""
    samples = samples or dsa_samples(operator, settings)
    sizes = sizes or settings.offered
    with TemporaryDirectory() as directory:
        policy = _policy(Path(directory), operator, settings, sizes, samples)
        values = settings.load.values()
        per_day = int(DAY_S / LOAD_STEP_S)
        known = {"epochs": {operator.name: _week(policy, values[:-per_day]).to_data()}}
        entries = _simulate(operator, settings, sizes, PolicyWithMemory(policy, known), values[-per_day:], samples)
    return _summed_up(planner, operator, settings, entries)


def compare_planners(
    operator: SizedOperator, settings: DaySettings, report: Callable[[str], None] = lambda _: None
) -> dict[str, DayRun]:
    """QCESA first, then CBA with each size."""
    samples = dsa_samples(operator, settings)
    runs = {"QCESA": run_day(operator, settings, samples=samples)}
    report("QCESA")
    for size in settings.offered:
        name = f"CBA {size.name}"
        runs[name] = run_day(operator, settings, sizes=(size,), planner=name, samples=samples)
        report(name)
    return runs


def _policy(
    directory: Path,
    operator: SizedOperator,
    settings: DaySettings,
    sizes: Sequence[InstanceSize],
    samples: Sequence[Sample],
) -> QEScalor:
    prices, sampled = directory / "prices.json", directory / "samples.json"
    prices.write_text(json.dumps([size.to_data() for size in sizes]))
    sampled.write_text(json.dumps({operator.name: [sample.to_data() for sample in samples]}))
    # the cost of starting is that of the example's core, also for a table with one large size
    per_core = min(sizes, key=lambda size: abs(size.cpu_cores - 1))
    scale = settings.costs().startup / (per_core.price_per_hour / per_core.cpu_cores / 3600) / settings.startup_cost_s
    return QEScalor(
        horizon=settings.horizon,
        epoch_s=settings.epoch_s,
        season_s=DAY_S,
        prices=str(prices),
        samples=str(sampled),
        forecast_speed=True,
        startup_cost_s=settings.startup_cost_s * scale,
        shutdown_cost_s=settings.shutdown_cost_s * scale,
    )


def _week(policy: QEScalor, values: Floats) -> EpochState:
    per_epoch = int(policy.epoch_s / LOAD_STEP_S)
    peaks = values.reshape(-1, per_epoch).max(axis=1)
    return EpochState(index=0, peak=0.0, learned=policy.epochs.forecaster.learned(peaks.tolist()))


def _simulate(
    operator: SizedOperator,
    settings: DaySettings,
    sizes: Sequence[InstanceSize],
    policy: Policy,
    values: Floats,
    samples: tuple[Sample, ...],
) -> MemoryJournal:
    job = SimulatedJob(
        operators=(operator.simulated(),),
        edges=(),
        settings=SimulatorSettings(
            sizes=settings.offered, instance_start_s=settings.instance_start_s, noise=0.05, buffer_records=None
        ),
    )
    times_s = np.arange(len(values)) * LOAD_STEP_S
    engine = SimulatedEngine(
        job, {operator.name: lambda at_s: np.interp(at_s, times_s, values)}, seed=settings.load.seed
    )
    rates = SampledSizes(samples=samples).rates(sizes)
    first = max(sizes, key=lambda size: rates[size.name] / size.price_per_hour)
    count = math.ceil(1.3 * values[0] / rates[first.name])
    journal = MemoryJournal()
    Loop(engine=engine, decider=Decider(policy), journal=journal).run(
        Target(parallelism={operator.name: count}, sizes={operator.name: {first.name: count}}),
        duration_s=DAY_S,
        interval_s=settings.interval_s,
    )
    return journal


def _summed_up(planner: str, operator: SizedOperator, settings: DaySettings, journal: MemoryJournal) -> DayRun:
    reports = journal.reports()
    metrics = [report.cycle.observation.operators[operator.name] for report in reports]
    sizes = {size.name: size for size in settings.offered}
    costs, spent, total, scalings = settings.costs(), [], 0.0, 0
    before: dict[str, int] | None = None
    for found in metrics:
        mix = found.sizes or {}
        hourly = sum(sizes[name].price_per_hour * count for name, count in mix.items())
        total += hourly * settings.interval_s / 3600 + (0.0 if before is None else costs.of_change(before, mix))
        scalings += before is not None and mix != before
        spent.append(total)
        before = mix
    return DayRun(
        planner=planner,
        summary=summarise(reports, journal.end(), slo_s=SLO_S),
        time_s=[report.cycle.time_s for report in reports],
        load=[found.arrival_rate or 0.0 for found in metrics],
        capacity=[
            sum(count * operator.curve(sizes[name]) for name, count in (found.sizes or {}).items()) for found in metrics
        ],
        latency_s=[found.latency_s or 0.0 for found in metrics],
        cost=spent,
        forecast_error=reports[-1].cycle.recommendation.measures["forecast_error"],
        scalings=scalings,
    )
