"""One permutation of ContTune's workload under one method, and everything its tables count in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sluice.control.guards import Guards
from sluice.dataflow.provisioning import SLACK_S
from sluice.journal.results import CycleReport
from sluice.lab.reproduce.conttune_jobs import LEVELS, MAPPER_CURVE, QUERIES, REDEPLOY_S, Curve, tuned_job
from sluice.lab.reproduce.simulated import play, reconfigured
from sluice.lab.simulator.job import RateCurve
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, Policy, policies

ROUNDS = 2
LEVEL_S = 600.0
INTERVAL_S = 60.0
TUNING_TIMES = LEVELS * ROUNDS

PAPER_MODE: Mapping[str, Any] = {
    "process": "zero-mean",
    "new_loads": False,
    "forget_beyond": 0.0,
    "real_rates": "received",
}
"""ContTune without what we added."""
METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Dhalion": ("dhalion", {}),
    "DS2": ("ds2", {"over_provisioning": 1.0}),
    "Big + DS2": ("big-ds2", {"over_provisioning": 1.0}),
    "Dragster": ("dragster", {}),
    "ContTune 0": ("conttune", {"alpha": 0, **PAPER_MODE}),
    "ContTune 3": ("conttune", {"alpha": 3, **PAPER_MODE}),
    "ours, alpha 0": ("conttune", {"alpha": 0}),
    "ours, alpha 3": ("conttune", {"alpha": 3}),
    "process of ours alone": ("conttune", {**PAPER_MODE, "process": "capacity-law"}),
    "new loads alone": ("conttune", {**PAPER_MODE, "new_loads": True}),
    "rates passed along alone": ("conttune", {**PAPER_MODE, "real_rates": "passed-along"}),
    "forgetting alone": ("conttune", {**PAPER_MODE, "forget_beyond": 0.25}),
    "eq. 4": ("conttune", {**PAPER_MODE, "acquisition": "expected-improvement"}),
}


@dataclass(frozen=True)
class Trial:
    """What determines a run. With `knows_rates` the real rates are known beforehand, as for table 8."""

    method: str
    query: str
    seed: int
    noise: float
    curve: tuple[tuple[int, float], ...] = tuple(MAPPER_CURVE.items())
    knows_rates: bool = False
    trace: tuple[float, ...] = ()
    """Loads per minute, as shares of the highest; without it, a permutation of the levels."""


@dataclass(frozen=True)
class Tuned:
    """What a run came to."""

    per_level: tuple[int, ...]
    growing: int
    shrinking: int
    largest_cores: int
    core_seconds: float
    backlog_share: float
    catching_up_s: float
    cores_at_ten: int
    latencies_at_ten_s: tuple[float, ...]
    level_cores: tuple[int, ...]

    @property
    def reconfigurations(self) -> int:
        return sum(self.per_level)

    @property
    def tuning_s(self) -> float:
        return REDEPLOY_S * self.reconfigurations


@dataclass(frozen=True)
class KnowingRates:
    """A policy that starts with the real input rates known."""

    inner: Policy
    memory: Mapping[str, Any]

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        return self.inner.decide(observation, memory or self.memory)


def tune(trial: Trial) -> Tuned:
    query = QUERIES[trial.query]
    levels = np.tile(np.random.default_rng(trial.seed).permutation(np.arange(1, LEVELS + 1)), ROUNDS)
    loads, step_s = (LEVELS * np.array(trial.trace), 60.0) if trial.trace else (levels.astype(float), LEVEL_S)
    curve: Curve = dict(trial.curve)
    cycles = play(
        tuned_job(query, trial.noise, curve),
        {name: _stepped(unit * loads, step_s) for name, unit in query.sources.items()},
        _policy(trial),
        duration_s=step_s * loads.size,
        interval_s=INTERVAL_S,
        guards=Guards(max_parallelism=query.largest if trial.method == "Dragster" else 90),
        seed=trial.seed,
    )
    return _measured(cycles, loads)


def _policy(trial: Trial) -> Policy:
    name, settings = METHODS[trial.method]
    policy = policies.create(name, dict(settings))
    if not trial.knows_rates or name != "conttune":
        return policy
    query = QUERIES[trial.query]
    at_ten = query.rates_at_ten()
    known = [
        {
            "loads": {source: level * unit for source, unit in query.sources.items()},
            "rates": {operator: level / LEVELS * rate for operator, rate in at_ten.items()},
        }
        for level in range(1, LEVELS + 1)
    ]
    return KnowingRates(policy, {"levels": known, "p_max": 1})


def _stepped(rates: npt.NDArray[np.float64], step_s: float) -> RateCurve:
    def curve(times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return rates[np.clip((times_s / step_s).astype(np.int64), 0, rates.size - 1)]

    return curve


def _measured(cycles: Sequence[CycleReport], loads: npt.NDArray[np.float64]) -> Tuned:
    per_level = [0] * TUNING_TIMES
    level_cores = [0] * TUNING_TIMES
    growing = shrinking = 0
    waiting = arrived = late_s = core_seconds = 0.0
    ten_again = max((number for number in range(min(loads.size, TUNING_TIMES)) if loads[number] == LEVELS), default=-1)
    at_ten: list[float] = []
    cores_at_ten = largest = 0
    for found in cycles:
        seen = found.cycle.observation
        level = min(int((seen.time_s - 1.0) / LEVEL_S), TUNING_TIMES - 1)
        cores = max(seen.parallelism.values())
        largest = max(largest, cores)
        level_cores[level] = cores
        core_seconds += cores * seen.interval_s
        arrived += seen.interval_s * sum(metrics.arrival_rate or 0.0 for metrics in seen.operators.values())
        late = [wait_s > SLACK_S for wait_s in seen.latency_samples_s]
        late_s += seen.interval_s * (sum(late) / len(late) if late else 0.0)
        if level == ten_again:
            cores_at_ten = cores
            if seen.time_s > (level + 0.5) * LEVEL_S:
                at_ten += seen.latency_samples_s
        if reconfigured(found):
            per_level[level] += 1
            grew = any(after > before for before, after in found.result.changed.values())
            growing, shrinking = growing + grew, shrinking + (not grew)
            waiting += sum(
                metrics.lag or 0.0 for metrics in seen.operators.values() if metrics.arrival_rate is not None
            )
    return Tuned(
        per_level=tuple(per_level),
        growing=growing,
        shrinking=shrinking,
        largest_cores=largest,
        core_seconds=core_seconds,
        backlog_share=waiting / arrived if arrived else 0.0,
        catching_up_s=late_s,
        cores_at_ten=cores_at_ten,
        latencies_at_ten_s=tuple(at_ten),
        level_cores=tuple(level_cores),
    )
