"""Dragster: target capacities by online optimisation; the parallelism that gives them by a Gaussian process.

Liu, Xu and Lau, "Online Resource Optimization for Elastic Stream Processing with Regret Guarantee" (ICPP 2022),
sections 4 and 5. One call of `decide` is one slot of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sluice.dataflow.budget import within_budget
from sluice.dataflow.numbers import listing, number
from sluice.dataflow.provisioning import full_busy_shares, provisioning, usual_full_busy
from sluice.errors import needs_extra
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

with needs_extra("policy 'dragster'", "learning"):
    import numpy as np

    from sluice.learning.capacity_tracking import CapacityEstimate, TrackedJob, track
    from sluice.learning.flow_model import fitted_flow_model, parse_functions, recorded_windows
    from sluice.learning.gaussian_process import BadMatrixError, Vector
    from sluice.learning.history import History, learn, learned_capacities, write_histories

PAPER_TASKS = 10
LARGEST_PRICE = 10.0
"""No shortage is worth more."""


@policy("dragster")
@dataclass(frozen=True, kw_only=True)
class Dragster:
    """Online saddle point or gradient steps on capacities, tracked by an extended upper confidence bound.

    Capacities are learned in records consumed per busy second, which a window without output does not disturb, and
    compared with targets through the throughput functions. Busy time stands for the paper's CPU share, which
    saturates below 1.

    Beyond the paper: a parallelism that surely falls short of the target is not chosen however near it comes (else a
    job settles a little too small, and regret grows forever); without shortage the gradient method moves excess
    capacity back to the demand, where the Lagrangian is flat.
    """

    method: Literal["saddle", "gradient"] = parameter("saddle", "saddle (eq. 14) or gradient (eq. 16)")
    delta: float = parameter(2.0, "the regret bound holds with probability 1 - 1/delta; larger explores more")
    budget: int | None = parameter(None, "most slots of the whole job")
    max_parallelism: int | None = parameter(
        None, "largest parallelism of an operator; none: what the guards allow, else the paper's ten tasks"
    )
    step: float = parameter(0.5, "gradient: step size, as a share of an operator's demand")
    throughput: Literal["linear", "minimum", "tanh"] = parameter("linear", "kind of throughput function fitted online")
    functions: str = parameter(
        "", 'throughput functions known beforehand, as JSON: {"a>b": {"kind": "linear", "k": [8]}}'
    )
    forget_beyond: float = parameter(
        0.25, "two samples in a row that differ by this share from those of the same parallelism end the history"
    )

    def __post_init__(self) -> None:
        if not 1 < self.delta < float("inf"):
            raise ValueError(f"delta must be above 1, got {self.delta}")
        if self.budget is not None and self.budget < 1:
            raise ValueError(f"budget must be at least 1 slot, got {self.budget}")
        if self.max_parallelism is not None and self.max_parallelism < 1:
            raise ValueError(f"max_parallelism must be at least 1, got {self.max_parallelism}")
        if not 0 < self.step < float("inf"):
            raise ValueError(f"step must be a positive number, got {self.step}")
        if not 0 < self.forget_beyond < 1:
            raise ValueError(f"forget_beyond must be in (0, 1), got {self.forget_beyond}")
        parse_functions(self.functions)

    @property
    def largest(self) -> int:
        return self.max_parallelism or PAPER_TASKS

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        recommendation, kept = self._decided(observation, memory)
        return recommendation.model_copy(update={"learned": learned_capacities(kept, self.largest)}), kept

    def _decided(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        histories, forgot = learn(observation, memory, tolerance=self.forget_beyond)
        windows = recorded_windows(observation, memory)
        slot = int(memory.get("slot", 0)) + 1
        kept: dict[str, Any] = {**memory, "history": write_histories(histories), "windows": windows, "slot": slot}
        flow = fitted_flow_model(observation, windows, self.throughput, parse_functions(self.functions))
        if memory.get("parallelism", now) == now:
            state = provisioning(observation).state
            kept["full_busy"] = full_busy_shares(observation, state, memory.get("full_busy", {}))
        kept["parallelism"] = now
        estimates = self._estimates(now, histories, kept.get("full_busy", {}))
        if flow is None or not estimates:
            return self._wait(now, len(estimates)), kept

        job = self._affordable(TrackedJob.of(flow, estimates, now))
        shortage = job.shortage()
        kept["dual"] = self._dual(memory, job, shortage, slot)
        kept |= self._account(memory, job, shortage, observation.interval_s)
        dual = np.array([kept["dual"][name] for name in job.names])
        target = np.where(job.silent, job.demand, self._target(memory, job, dual))
        kept["target"] = dict(zip(job.names, target.tolist(), strict=True))
        capacities = dict(zip(job.names, (target / job.selectivity).tolist(), strict=True))
        tracked = {
            name: track(estimate, capacities[name], now[name], slot=slot, delta=self.delta)
            for name, estimate in estimates.items()
        }
        affordable = self._afford({**now, **tracked}, job)
        return self._explained(affordable, now, capacities, kept, forgot), kept

    def _explained(
        self,
        parallelism: dict[str, int],
        now: Mapping[str, int],
        capacities: Mapping[str, float],
        kept: Memory,
        forgot: tuple[str, ...],
    ) -> Recommendation:
        measures = {f"{name}_records": kept[name] for name in ("regret", "fit", "shortfall")}
        note = f"; history of {listing(forgot)} forgotten, it contradicts what is measured now" if forgot else ""
        changes = {name: count - now[name] for name, count in parallelism.items() if count != now[name]}
        if not changes:
            held = f"dragster: slot {kept['slot']}, every target capacity is met by {sum(now.values())} slots{note}"
            return Recommendation.hold(held, measures)
        explained = listing(
            f"{name} {now[name]} -> {parallelism[name]} for a capacity of {number(capacities.get(name, 0.0))} rec/s"
            f" (price {number(kept['dual'].get(name, 0.0))})"
            for name in sorted(changes, key=lambda name: -abs(changes[name]))
        )
        reason = f"dragster: slot {kept['slot']}, {explained}{note}"
        return Recommendation(parallelism=parallelism, reason=reason, measures=measures)

    def _affordable(self, job: TrackedJob) -> TrackedJob:
        """The job at the load that the largest configuration carries.

        Prices of a load that nothing carries would grow forever and mean nothing (the paper's assumption 1).
        """
        share = job.carried(self._afford(dict.fromkeys(job.names, self.largest), job))
        return TrackedJob.of(job.flow.scaled(share), job.estimates, job.now) if 0 < share < 1 else job

    def _dual(self, memory: Memory, job: TrackedJob, shortage: Vector, slot: int) -> dict[str, float]:
        """Equation 15 with `gamma = 1 / sqrt(t)`, shortages as shares of an operator's demand."""
        before = memory.get("dual", {})
        gamma = 1.0 / np.sqrt(slot)
        lacking = shortage / np.maximum(job.demand, 1e-9)
        return {
            name: float(np.clip(before.get(name, 0.0) + gamma * lacking[i], 0.0, LARGEST_PRICE))
            for i, name in enumerate(job.names)
        }

    def _target(self, memory: Memory, job: TrackedJob, dual: Vector) -> Vector:
        """The next target capacities (records/s emitted): equation 14 or 16."""
        if self.method == "saddle":
            return job.flow.best_capacities(dual, job.most)
        before = memory.get("target", {})
        start = np.array([before.get(name, job.capacity[i]) for i, name in enumerate(job.names)])
        start = np.clip(start, 0.0, job.most)
        slope = job.flow.gradient(start, dual)
        stride = self.step * job.demand
        # beyond the demand and what unserved records are worth, the Lagrangian is flat and capacity only costs
        ceiling = np.minimum(job.flow.sufficient() + stride * dual, job.most)
        climbed = np.clip(start + stride * slope, np.minimum(start, ceiling), ceiling)
        settled = start + min(self.step, 1.0) * (ceiling - start)
        target: Vector = np.where(start > ceiling, settled, climbed)
        return target

    def _afford(self, parallelism: dict[str, int], job: TrackedJob) -> dict[str, int]:
        if self.budget is None:
            return parallelism
        return within_budget(parallelism, self.budget, job.coverage)

    def _account(self, memory: Memory, job: TrackedJob, shortage: Vector, interval_s: float) -> dict[str, float]:
        """Dynamic regret (eq. 10) and fit (eq. 12) so far, in records; `shortfall` leaves out what is to spare."""
        ideal = self._afford(dict.fromkeys(job.names, self.largest), job)
        missed = float(job.throughput(job.capacities_at(ideal)) - job.throughput(job.capacity))
        return {
            "regret": memory.get("regret", 0.0) + max(0.0, missed) * interval_s,
            "fit": memory.get("fit", 0.0) + float(shortage.sum()) * interval_s,
            "shortfall": memory.get("shortfall", 0.0) + float(np.maximum(shortage, 0.0).sum()) * interval_s,
        }

    def _wait(self, now: dict[str, int], known: int) -> Recommendation:
        """Too little is known yet; only the budget is enforced."""
        why = f"dragster: load unknown, or capacity known for only {known} of {len(now)} operators"
        if self.budget is None or sum(now.values()) <= self.budget:
            return Recommendation.hold(why)
        affordable = within_budget(now, self.budget, lambda name, instances: instances / now[name])
        return Recommendation(
            parallelism=affordable, reason=f"{why}; {sum(now.values())} slots exceed the budget of {self.budget}"
        )

    def _estimates(
        self, now: Mapping[str, int], histories: Mapping[str, History], full_busy: Mapping[str, float]
    ) -> dict[str, CapacityEstimate]:
        """Operators without a measurement are left out: they keep their parallelism."""
        candidates = np.arange(1, self.largest + 1, dtype=float)
        usual = usual_full_busy(full_busy)
        estimates = {}
        for name in now:
            history = histories.get(name)
            if history is None or not history.samples:
                continue
            try:
                mean, variance = history.fit(reach=self.largest).predict(candidates)
            except BadMatrixError:
                continue
            measured = np.isin(candidates, list(history.samples))
            share = full_busy.get(name, usual)
            estimates[name] = CapacityEstimate(share * np.maximum(mean, 0.0), share * np.sqrt(variance), measured)
        return estimates
