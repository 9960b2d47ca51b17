"""One run, from its description to its summary, on any engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sluice import __version__
from sluice.control.decider import Decider
from sluice.control.engine import Engine
from sluice.control.guards import Guards
from sluice.control.loop import Loop, Planner, Reviewer, Watcher
from sluice.control.memory import MemoryStore
from sluice.control.switches import Switchboard
from sluice.errors import BadInputError
from sluice.journal.file import Journal
from sluice.journal.records import Choice, RunHeader
from sluice.lab.pipelines import PipelineDefinition
from sluice.lab.pipelines.profiled import ProfiledPipeline
from sluice.lab.simulator import SimulatedEngine, SimulatedJob, SimulatorSettings
from sluice.lab.workloads import Workload, duration_s, rate_curve
from sluice.model import Target
from sluice.protocol import Policy
from sluice.registry import build

if TYPE_CHECKING:
    from sluice.lab.placing import PlacementSetup

THESIS_GUARDS: Mapping[str, Any] = {"max_slots": 80, "max_step": 15, "cooldown_s": 300.0}


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that determines a run. Two equal specs on the simulator give the same journal, byte for byte.

    `duration_s` and `interval_s` are engine time; the workload's own time runs `speedup` times faster.
    """

    pipeline: PipelineDefinition
    policy: Policy
    workload: Workload
    choices: Mapping[str, Choice] = field(
        default_factory=lambda: {kind: Choice(name="unnamed") for kind in ("pipeline", "policy", "workload")}
    )
    """What the header says of pipeline, policy and workload."""
    engine: str = "sim"
    guards: Guards = field(default_factory=lambda: Guards(**THESIS_GUARDS))
    duration_s: float | None = None
    interval_s: float = 15.0
    speedup: float = 1.0
    seed: int = 0
    slo_s: float = 30.0
    simulator: Mapping[str, Any] = field(default_factory=dict)
    initial_parallelism: int | None = None
    """Instances of every operator at the start; null: as the pipeline says. The simulator's."""
    dry_run: bool = False
    placing: PlacementSetup | None = None
    shadows: Mapping[str, Policy] = field(default_factory=dict)
    """Label -> policy that is asked beside the one that acts, and put on record."""

    def __post_init__(self) -> None:
        for name in ("duration_s", "interval_s", "speedup", "slo_s"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise BadInputError(f"{name} must be above 0, got {value:g}")

    @property
    def whole_duration_s(self) -> float:
        """The given duration, or that of the workload's pattern."""
        return self.duration_s or duration_s(self.workload) / self.speedup


def simulated_job(spec: RunSpec) -> SimulatedJob:
    """The pipeline as the simulator runs it, the run's own simulator settings applied."""
    job = spec.pipeline.simulated()
    workers = {"cluster": spec.placing.cluster} if spec.placing else {}
    if not spec.simulator and not workers:
        return job
    present = vars(job.settings)
    return replace(job, settings=build(SimulatorSettings, {**present, **spec.simulator, **workers}, "simulator"))


def simulated_engine(spec: RunSpec) -> tuple[SimulatedEngine, Target]:
    """The simulator set up for a run, and the plan it starts with."""
    job = simulated_job(spec)
    curves = {
        source: rate_curve(
            spec.workload,
            peak_rate=spec.pipeline.peak_rate * share,
            seed=spec.seed,
            speedup=spec.speedup,
        )
        for source, share in spec.pipeline.source_shares().items()
    }
    initial = {name: spec.initial_parallelism or job.initial_parallelism.get(name, 1) for name in job.graph.names}
    engine = SimulatedEngine(job, curves, spec.seed)
    engine.expect(spec.whole_duration_s)
    return engine, Target(parallelism=initial)


def _only_here(spec: RunSpec) -> dict[str, Any]:
    """What the header says of the simulator; `unplanned` is why nobody can plan this run from its header."""
    if spec.engine != "sim":
        return {}
    why = "measured costs" if isinstance(spec.pipeline, ProfiledPipeline) else "workers" if spec.placing else None
    return {
        **({"simulator": dict(spec.simulator)} if spec.simulator else {}),
        **({"unplanned": why} if why else {}),
    }


def run(
    spec: RunSpec,
    engine: Engine,
    initial: Target,
    journal: Journal,
    *,
    planner: Planner | None = None,
    reviewer: Reviewer | None = None,
    store: MemoryStore | None = None,
    policy_timeout_s: float | None = None,
    on_report: Watcher | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    switches: Switchboard | None = None,
    fulfil_within_s: float | None = None,
) -> None:
    """Write the head of the journal and cycle until the duration is over."""
    journal.append(
        RunHeader(
            version=__version__,
            engine=spec.engine,
            pipeline=spec.choices["pipeline"],
            policy=spec.choices["policy"],
            workload=spec.choices["workload"],
            guards=dict(vars(spec.guards)),
            graph=engine.graph,
            duration_s=spec.whole_duration_s,
            interval_s=spec.interval_s,
            speedup=spec.speedup,
            seed=spec.seed,
            slo_s=spec.slo_s,
            dry_run=spec.dry_run,
            settings=_only_here(spec),
        )
    )
    Loop(
        engine=engine,
        decider=Decider(spec.policy, policy_timeout_s),
        journal=journal,
        guards=spec.guards,
        planner=planner or (spec.placing.planner(simulated_job(spec)) if spec.placing else None),
        reviewer=reviewer,
        store=store,
        shadows={label: Decider(policy, policy_timeout_s) for label, policy in spec.shadows.items()},
        dry_run=spec.dry_run,
        switches=switches or Switchboard(),
        **({} if fulfil_within_s is None else {"fulfil_within_s": fulfil_within_s}),
    ).run(
        initial,
        duration_s=spec.whole_duration_s,
        interval_s=spec.interval_s,
        on_report=on_report,
        should_stop=should_stop,
    )
