"""ContTune: a Big phase that ends backpressure at once, a Small phase that reuses every earlier measurement.

Lian et al., "ContTune: Continuous Tuning by Conservative Bayesian Optimization" (PVLDB 16, 2023), sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from sluice.dataflow.big_phase import raise_all
from sluice.dataflow.numbers import listing, ratio, whole_instances
from sluice.dataflow.provisioning import (
    ProvisioningState,
    full_busy_shares,
    interrupted,
    provisioning,
    same_load,
    usual_full_busy,
)
from sluice.dataflow.rates import passed_input_rates, real_input_rates, source_loads
from sluice.errors import needs_extra
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

with needs_extra("policy 'conttune'", "learning"):
    from sluice.learning.conservative import ParallelismChoice, choose
    from sluice.learning.history import History, learn, learned_capacities, write_histories

LEVELS_KEPT = 200
PROPORTIONAL = 0.1
"""Rates per load that differ by less than this from level to level are taken to be constant."""
BURSTY = 0.5
"""A rate below this share of the rate at the same load before comes from a window that has not fired yet."""


@policy("conttune")
@dataclass(frozen=True, kw_only=True)
class ContTune:
    """Conservative Bayesian optimisation on the history of (parallelism, processing ability).

    Under-provisioned at a load whose real rates are not known: Big phase. Else every operator on its own gets the
    smallest parallelism whose expected processing ability covers its real input rate; all are applied at once.

    Real rates are remembered per load level, so a load that comes again needs no Big phase (footnote 3 of the paper
    says so for the tuning time under way); nor does a new one, once the levels seen agree that rates grow in
    proportion to the load.

    Ours, beyond the paper: the capacity law, new loads, forgetting, rates passed along the graph. `process=zero-mean`,
    `new_loads=false`, `forget_beyond=0` and `real_rates=received` switch them off, each alone or all: the paper's.
    """

    alpha: int = parameter(3, "how far from a measured parallelism the history is trusted; beyond it, linear scaling")
    acquisition: Literal["feasible-mean", "expected-improvement"] = parameter(
        "feasible-mean", "feasible-mean (eq. 5) or expected-improvement (eq. 4, constrained)"
    )
    over_provisioning: float = parameter(1.0, "factor on the real input rates")
    max_parallelism: int = parameter(90, "the Big phase stops doubling here")
    forget_beyond: float = parameter(
        0.25,
        "two samples in a row that differ by this share from those of the same parallelism end the history; "
        "0: it never ends, as in the paper",
    )
    process: Literal["capacity-law", "zero-mean"] = parameter(
        "capacity-law", "Gaussian process: ours around a power law, or the authors' (mean 0, jitter for noise)"
    )
    new_loads: bool = parameter(True, "a load never seen needs no Big phase once rates grow in proportion to the load")
    real_rates: Literal["passed-along", "received"] = parameter(
        "passed-along", "what arrives at the sources, passed along the graph, or what operators receive (the paper)"
    )

    def __post_init__(self) -> None:
        if self.alpha < 0:
            raise ValueError(f"alpha must be 0 or more instances, got {self.alpha}")
        if not 0 < self.over_provisioning < float("inf"):
            raise ValueError(f"over_provisioning must be a positive number, got {self.over_provisioning}")
        if self.max_parallelism < 1:
            raise ValueError(f"max_parallelism must be at least 1, got {self.max_parallelism}")
        if not 0 <= self.forget_beyond < 1:
            raise ValueError(f"forget_beyond must be in [0, 1), got {self.forget_beyond}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        recommendation, kept = self._decided(observation, memory)
        return recommendation.model_copy(update={"learned": learned_capacities(kept, kept["p_max"])}), kept

    def _decided(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        histories, forgot = learn(observation, memory, tolerance=self.forget_beyond)
        state = provisioning(observation)
        unchanged = memory.get("parallelism", now) == now
        full_busy = memory.get("full_busy", {})
        if unchanged:
            full_busy = full_busy_shares(observation, state.state, full_busy)
        behind = int(memory.get("behind", 0)) * unchanged + 1 if state.state is ProvisioningState.BEHIND else 0
        loads = source_loads(observation)
        levels = list(memory.get("levels", []))
        known = recall(levels, loads, new_loads=self.new_loads)
        p_max = max([*now.values(), memory.get("p_max", 1), *(h.largest for h in histories.values())])
        kept: dict[str, Any] = {
            "history": write_histories(histories),
            "levels": levels,
            "p_max": p_max,
            "parallelism": now,
            "full_busy": full_busy,
            "behind": behind,
        }
        note = f"; history of {listing(forgot)} forgotten, it contradicts what is measured now" if forgot else ""
        if state.state is ProvisioningState.BEHIND:
            if interrupted(observation, memory.get("parallelism")):
                return Recommendation.hold(f"conttune: {state.why}, in a window interrupted by the change{note}"), kept
            tuned, why = self._small(observation, histories, known, kept) if known else ({}, "")
            if any(tuned[name] > now[name] for name in tuned):
                return Recommendation(
                    parallelism=tuned, reason=f"conttune: real rates known for this load, {why}{note}"
                ), kept
            if known and behind == 1:
                return Recommendation.hold(f"conttune: {state.why}, though by history it should not: waits{note}"), kept
            big = raise_all(now, p_max, max(self.max_parallelism, *now.values()))
            if big == now:
                return Recommendation.hold(f"conttune: {state.why}, and all at {p_max} already{note}"), kept
            kept["p_max"] = max(big.values())
            reason = f"conttune: Big phase, all to {kept['p_max']}: {state.why}{note}"
            return Recommendation(parallelism=big, reason=reason), kept

        doubted = [name for name, history in histories.items() if history.in_doubt]
        if doubted:
            return Recommendation.hold(
                f"conttune: {listing(doubted)} differs from its history by over {self.forget_beyond:g}, waits"
            ), kept
        if state.state is ProvisioningState.CATCHING_UP:
            return Recommendation.hold(f"conttune: waits until the backlog is worked off, {state.why}{note}"), kept
        seen = passed_input_rates if self.real_rates == "passed-along" else real_input_rates
        rates = settled_rates(observation, seen(observation), known)
        kept["levels"] = remember(levels, loads, rates)
        tuned, why = self._small(observation, histories, rates, kept)
        if all(tuned[name] == now[name] for name in tuned):
            return Recommendation.hold(f"conttune: nothing to change, {why}{note}"), kept
        return Recommendation(parallelism=tuned, reason=f"conttune: Small phase, {why}{note}"), kept

    def _small(
        self, observation: Observation, histories: Mapping[str, History], rates: Mapping[str, float], known: Memory
    ) -> tuple[dict[str, int], str]:
        """Parallelism of the operators whose rate is known; the reason names those that change first."""
        choices: dict[str, ParallelismChoice] = {}
        usual = usual_full_busy(known["full_busy"])
        for name, metrics in observation.operators.items():
            if name not in rates:
                continue
            needed = rates[name] * self.over_provisioning / known["full_busy"].get(name, usual)
            instances = ratio(needed, metrics.per_instance_rate())
            choice = choose(
                histories.get(name, History()),
                needed,
                None if instances is None else min(whole_instances(instances), self.max_parallelism),
                alpha=self.alpha,
                acquisition=self.acquisition,
                p_max=known["p_max"],
                process=self.process,
            )
            if choice is not None:
                choices[name] = choice
        now = observation.parallelism
        order = sorted(choices, key=lambda name: (-abs(choices[name].parallelism - now[name]), name))
        why = listing(f"{name} {now[name]} -> {choices[name].why}" for name in order) or (
            f"no rate known for any of {len(now)} operators"
        )
        return {name: choice.parallelism for name, choice in choices.items()}, why


def recall(
    levels: list[Mapping[str, Any]], loads: dict[str, float] | None, *, new_loads: bool = True
) -> dict[str, float]:
    """Real input rates known for this load: remembered, or in proportion to it once levels agree that they are.

    Empty if the load is new and the levels seen so far are fewer than two, or do not agree.
    """
    if loads is None:
        return {}
    for level in reversed(levels):
        if same_load(level["loads"], loads):
            return dict(level["rates"])
    if not new_loads:
        return {}
    alike = [level for level in levels if (factor := _factor(level["loads"], loads)) is not None and factor > 0]
    if len(alike) < 2:
        return {}
    total = sum(loads.values())
    per_load = [{name: rate / sum(level["loads"].values()) for name, rate in level["rates"].items()} for level in alike]
    if any(rates.keys() != per_load[0].keys() for rates in per_load):
        return {}
    for name in per_load[0]:
        seen = [rates[name] for rates in per_load]
        if max(seen) - min(seen) > PROPORTIONAL * max(seen):
            return {}
    return {name: per_load[-1][name] * total for name in per_load[-1]}


def _factor(before: Mapping[str, float], loads: Mapping[str, float]) -> float | None:
    """How many times larger one load is than another; null if their sources do not grow together."""
    if before.keys() != loads.keys() or not all(rate > 0 for rate in before.values()):
        return None
    factors = [loads[name] / before[name] for name in loads]
    return fmean(factors) if max(factors) - min(factors) <= PROPORTIONAL * max(factors) else None


def remember(
    levels: list[Mapping[str, Any]], loads: dict[str, float] | None, rates: Mapping[str, float]
) -> list[Mapping[str, Any]]:
    if loads is None or not rates:
        return levels
    others = [level for level in levels if not same_load(level["loads"], loads)]
    return [*others, {"loads": loads, "rates": dict(rates)}][-LEVELS_KEPT:]


def settled_rates(observation: Observation, seen: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    """The real rates seen now; where a window has not fired yet, those remembered for this load."""
    rates = dict(seen)
    for name, before in known.items():
        if name in observation.operators and rates.get(name, 0.0) < BURSTY * before:
            rates[name] = before
    return rates
