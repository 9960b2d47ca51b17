"""sluice's own policy: learn what every operator can do, look ahead, and act when that is worth what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.capacity_curve import CapacityCurve
from sluice.dataflow.flow_plan import Option, PlanCost, Terms, cheapest_plan
from sluice.dataflow.job_model import JobModel
from sluice.dataflow.load_outlook import in_steps, outlook
from sluice.dataflow.numbers import listing, number
from sluice.model import ActionCost, Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

WINDOWS_KEPT = 480
MOST_STEPS = 30
LEVELS = 9
IDLE_WINDOWS = 4
COLD_S = 120.0
"""A job that keeps up is not changed so soon after its start while operators are unknown."""
ACTION_PRICE = 0.2
"""What an action costs beside its downtime, in windows of the whole job's slots: nobody likes a nervous scaler."""
UNKNOWN_DOWNTIME_S = 15.0
"""Of an engine that has not acted yet."""


@policy("sluice")
@dataclass(frozen=True, kw_only=True)
class Sluice:
    """The cheapest plan for the next minutes, on capacities learned from every window and paths the load may take."""

    objective_s: float = parameter(30.0, "latency objective: how long a record may wait in its topic")
    late_price: float = parameter(5.0, "what a second above the objective costs, in seconds of the whole job's slots")
    caution: float = parameter(1.0, "standard deviations by which a capacity is taken to be below its mean, where a mistake lasts")
    forecast: bool = parameter(True, "follow the load's trend; off: it stays as it is")
    band: bool = parameter(True, "plan for all paths the load may take; off: for the mean alone")
    drain: bool = parameter(True, "count the backlog there is; off: plan as if there were none")
    action_cost: bool = parameter(True, "count what an action costs on this engine; off: actions are free")
    curve: bool = parameter(True, "learn how capacity bends with parallelism; off: it stays as assumed")
    saturation: bool = parameter(True, "learn from windows at the limit what a busy share promises; off: all of it")
    doubt: bool = parameter(True, "believe what a job at its limit carries rather than the model; off: the model")

    def __post_init__(self) -> None:
        for name in ("objective_s", "late_price"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.caution < 10:
            raise ValueError(f"caution must be in [0, 10), got {self.caution}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        cost = observation.action_cost or ActionCost()
        model = JobModel.learned(observation, memory, bends=self.curve, saturates=self.saturation, doubts=self.doubt)
        loads = (memory.get("loads", []) + [model.load])[-WINDOWS_KEPT:] if model.load is not None else memory.get("loads", [])
        kept: dict[str, Any] = {**model.to_memory(), "loads": loads}
        if not loads:
            return Recommendation.hold(f"sluice: no load known of any of {len(now)} operators"), kept
        first_s = memory.get("first_s", observation.time_s - observation.interval_s)
        kept["first_s"] = min(first_s, observation.time_s)
        idle = memory.get("idle", 0) + 1 if not model.lag and not loads[-1] else 0
        kept["idle"] = min(idle, IDLE_WINDOWS)
        if idle >= IDLE_WINDOWS:
            if max(now.values()) == 1:
                return Recommendation.hold("sluice: nothing arrives, and 1 instance of each operator is the least"), kept
            reason = f"sluice: nothing arrived in {idle} windows: 1 instance of each operator until something does"
            return Recommendation(parallelism=dict.fromkeys(now, 1), reason=reason), kept
        if not any(model.inputs.values()):
            return Recommendation.hold(f"sluice: no capacity known of any of {len(now)} operators"), kept
        if cost.cooling_s > 0:
            return Recommendation.hold(f"sluice: cooldown, {number(cost.cooling_s)} s left"), kept
        if model.unknown and not model.lag and observation.time_s - kept["first_s"] < COLD_S:
            return Recommendation.hold(
                f"sluice: waits up to {COLD_S:g} s for figures of {listing(model.unknown)}: the job keeps up"
            ), kept
        return self._planned(observation, model, loads, cost), kept

    def _planned(
        self, observation: Observation, model: JobModel, loads: list[float], cost: ActionCost
    ) -> Recommendation:
        now = observation.parallelism
        terms, steps, ahead = self._terms(observation.interval_s, cost)
        bound_s = cost.cooldown_s + terms.downtime_s + terms.start_s
        caution = self.caution * bound_s / (bound_s + self.objective_s)
        finer = 2 if ahead > 1 else 1
        past = in_steps(loads, ahead * finer)
        if len(past) < 1:
            past = [math.fsum(loads) / len(loads)]
        coarse = outlook(past, -(-steps // finer), trend=self.forecast, band=self.band)
        paths = [[value for value in path for _ in range(finer)][:steps] for path in coarse]
        lag = model.lag if self.drain else 0.0
        high = max(max(path) for path in paths)
        low = min(min(path) for path in paths)
        usual = math.fsum(math.fsum(path) for path in paths) / (len(paths) * steps)
        present = Option(float(sum(now.values())), model.carried(now, caution))
        at_usual = model.sized(max(usual, 1e-9), now, caution)
        whole_job = float(sum(at_usual.values()))
        terms = Terms(
            step_s=terms.step_s,
            downtime_s=terms.downtime_s,
            start_s=terms.start_s,
            objective_s=terms.objective_s,
            cooldown_s=cost.cooldown_s,
            late_price=self.late_price * whole_job,
            action_price=whole_job * (terms.downtime_s + ACTION_PRICE * observation.interval_s),
            slots_per_rate=whole_job / max(usual, 1e-9),
        )
        most = max(high * 1.3 + lag / max(terms.objective_s, observation.interval_s), 1e-9)
        least = max(min(low, usual) * 0.9, most / 50)
        configurations = self._ladder(model, now, least, most, caution)
        options = [Option(float(sum(each.values())), model.carried(each, caution)) for each in configurations]
        waits = sorted({0, 1, steps // 6, steps // 3} if self.action_cost else {0})
        best, never = cheapest_plan(paths, lag, present, options, waits, terms)
        horizon_s = steps * terms.step_s
        facts = (
            f"load {number(loads[-1])} rec/s, {number(low)} to {number(high)} within {number(horizon_s)} s, "
            f"lag {number(lag)}, {sum(now.values())} slots carry {number(present.rate)}"
        )
        if best.option is None or best.wait_steps > 0 or configurations[best.option] == now:
            later = "" if best.option is None else f"; acts in {number(best.wait_steps * terms.step_s)} s if this holds"
            return Recommendation.hold(
                f"sluice: {facts}: late {number(never.late_s)} s if nothing changes, no action is worth its cost{later}"
            )
        chosen = configurations[best.option]
        return Recommendation(parallelism=chosen, reason=self._reason(facts, now, chosen, options[best.option], best, never))

    def _terms(self, interval_s: float, cost: ActionCost) -> tuple[Terms, int, int]:
        """Prices left open, the number of steps, and the windows in each: an action must pay within the horizon."""
        downtime_s = UNKNOWN_DOWNTIME_S if cost.downtime_s is None else cost.downtime_s
        start_s = cost.start_s or 0.0
        if not self.action_cost:
            downtime_s = start_s = 0.0
        stopped_s = downtime_s + start_s
        late_s = 2 * stopped_s**2 / (stopped_s + self.objective_s)
        horizon_s = 2 * interval_s + cost.cooldown_s + stopped_s + self.late_price * late_s
        windows = max(1, round(horizon_s / interval_s / MOST_STEPS))
        steps = max(2, math.ceil(horizon_s / (windows * interval_s)))
        return Terms(
            step_s=windows * interval_s,
            downtime_s=downtime_s,
            start_s=start_s,
            objective_s=self.objective_s,
            cooldown_s=cost.cooldown_s,
            late_price=self.late_price,
            action_price=0.0,
            slots_per_rate=0.0,
        ), min(steps, 2 * MOST_STEPS), windows

    @staticmethod
    def _ladder(
        model: JobModel, now: Mapping[str, int], least: float, most: float, caution: float
    ) -> list[dict[str, int]]:
        """Configurations for loads from the least to the most, smallest first, each once."""
        ratio = (most / least) ** (1 / (LEVELS - 1))
        found: dict[tuple[int, ...], dict[str, int]] = {}
        for level in range(LEVELS):
            sized = model.sized(least * ratio**level, now, caution)
            found.setdefault(tuple(sized.values()), sized)
        return list(found.values())

    def _reason(
        self,
        facts: str,
        now: Mapping[str, int],
        chosen: Mapping[str, int],
        option: Option,
        best: PlanCost,
        never: PlanCost,
    ) -> str:
        changed = sorted((name for name in chosen if chosen[name] != now[name]), key=lambda n: -abs(chosen[n] - now[n]))
        changes = listing((f"{name} {now[name]} -> {chosen[name]}" for name in changed), of=len(changed))
        return (
            f"sluice: {changes}: {facts}, {number(option.slots)} carry {number(option.rate)}; "
            f"late {number(best.late_s)} s instead of {number(never.late_s)} s"
        )
