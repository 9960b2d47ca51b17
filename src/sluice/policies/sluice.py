"""sluice's own policy: learn what every operator can do, look ahead, and act when that is worth what it costs.

Its parts are on their own, each with the idea behind it: `dataflow.capacity_curve` and `job_model` (what the job can
carry), `load_outlook` (what may come), `flow_plan` (what a plan costs). What an action costs on this engine is in the
observation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.flow_plan import REACTS_AT, Option, Terms, cheapest_plan
from sluice.dataflow.job_model import JobModel
from sluice.dataflow.job_sizing import JobSizing
from sluice.dataflow.load_outlook import Skill, after_jump, in_steps, outlook, steady_windows, unforeseen
from sluice.dataflow.numbers import listing, number
from sluice.model import ActionCost, Observation, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

WINDOWS_KEPT = 480
"""Two hours of windows of 15 s: what the outlook draws its paths from."""
MOST_STEPS = 30
LEVELS = 9
IDLE_WINDOWS = 4
"""A job without load rests after so many, or once idling has cost as much as being woken will: nobody knows for how
long nothing comes, and so it costs at most twice what it would if one did."""
COLD_S = 90.0
"""A job that keeps up is not changed so soon after its start, if an operator is unknown or a mistake lasts longer."""
ACTION_PRICE = 0.2
"""What an action costs beside its downtime, in windows of the whole job's slots: nobody likes a nervous scaler."""
NO_LESS = 0.95
SURE_GAIN = 1.15
SAVING = 0.25
"""What a smaller job must save beyond what becoming smaller costs, as a share of that."""
LONGER = 3.0
"""How much further a plan looks at most where the load is steady."""
UNKNOWN_DOWNTIME_S, UNKNOWN_DOWNTIME = 15.0, 0.15
"""Of an engine that has not acted yet: so many seconds, or this share of the cooldown somebody found necessary."""


@dataclass(frozen=True)
class _Horizon:
    """How far a plan looks: `steps` of `windows` windows each; an action must pay for itself within it."""

    steps: int
    windows: int
    downtime_s: float
    start_s: float


@policy("sluice")
@dataclass(frozen=True, kw_only=True)
class Sluice:
    """The cheapest plan for the next minutes, on capacities learned from every window and paths the load may take.

    Every plan (hold; change now; change later) is played through on some ten paths of the load. It costs its slots, its
    actions, and `late_price` times the whole job for every second above the objective. Only a change that is best *now*
    is recommended. How far it looks ahead follows from what an action costs: two windows where it is free, minutes
    where the job is restarted. The switches turn single parts off, to see what they bring.
    """

    objective_s: float = parameter(30.0, "latency objective: how long a record may wait in its topic")
    late_price: float = parameter(5.0, "what a second above the objective costs, in seconds of the whole job's slots")
    caution: float = parameter(
        1.0, "standard deviations by which a capacity is taken to be below its mean, where a mistake lasts"
    )
    forecast: bool = parameter(True, "follow the load's trend; off: it stays as it is")
    band: bool = parameter(True, "plan for all paths the load may take; off: for the mean alone")
    drain: bool = parameter(True, "count the backlog there is; off: plan as if there were none")
    action_cost: bool = parameter(True, "count what an action costs on this engine; off: actions are free")
    curve: bool = parameter(True, "learn how capacity bends with parallelism; off: it stays as assumed")
    saturation: bool = parameter(
        True, "learn from windows at the limit and from backpressure what a busy share promises; off: all of it"
    )
    doubt: bool = parameter(True, "believe what a job at its limit carries rather than the model; off: the model")

    def __post_init__(self) -> None:
        for name in ("objective_s", "late_price"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.caution < 10:
            raise ValueError(f"caution must be in [0, 10), got {self.caution}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        model = JobModel.learned(observation, memory, bends=self.curve, saturates=self.saturation, doubts=self.doubt)
        loads = [*memory.get("loads", []), *([] if model.load is None else [model.load])][-WINDOWS_KEPT:]
        first_s = min(memory.get("first_s", math.inf), observation.time_s - observation.interval_s)
        idle = memory.get("idle", 0) + 1 if loads and not loads[-1] and not model.lag else 0
        kept: dict[str, Any] = {
            **model.to_memory(),
            "loads": loads,
            "first_s": first_s,
        }
        cost = observation.action_cost or ActionCost()
        horizon = self._horizon(observation.interval_s, cost, steady_windows(loads))
        rests_after = self._idle_windows(observation.interval_s, horizon)
        kept["idle"] = min(idle, rests_after)
        skill = Skill.from_list(memory.get("skill", ()))
        if len(loads) > 1 and model.load is not None and memory.get("said"):
            skill = skill.checked(memory["said"], loads)
        paths = self._paths(loads, horizon) if loads else []
        kept |= {"skill": skill.to_list(), "said": [path[0] for path in paths]}
        if skill.is_poor:
            paths = unforeseen(loads[-1], horizon.steps, for_long=skill.is_poor_for_long)
        if idle:
            return _at_rest(observation, idle, rests_after), kept
        if not loads or not any(model.inputs.values()):
            unknown = "capacity (input and busy share)" if loads else "load (arrivals, or input and growth of the lag)"
            return Recommendation.hold(
                f"sluice: no {unknown} known of any of {len(model.parallelism)} operators yet; the first one decides"
            ), kept
        if cost.cooling_s > 0:
            return Recommendation.hold(f"sluice: cooldown, {number(cost.cooling_s)} s left"), kept
        if (model.unknown or cost.cooldown_s > COLD_S) and not model.lag and observation.time_s - first_s < COLD_S:
            what = f"figures of {listing(model.unknown)}" if model.unknown else "more than a glance at the job"
            return Recommendation.hold(f"sluice: waits up to {COLD_S:g} s for {what}, for it keeps up"), kept
        planned = self._planned(observation.interval_s, model, loads[-1], cost, horizon, paths)
        if skill.is_poor:
            planned = planned.model_copy(update={"reason": f"{planned.reason}; forecasts were poor, so it uses none"})
        return planned, kept

    def _planned(
        self,
        interval_s: float,
        model: JobModel,
        load: float,
        cost: ActionCost,
        horizon: _Horizon,
        paths: list[list[float]],
    ) -> Recommendation:
        now = model.parallelism
        bound_s = cost.cooldown_s + horizon.downtime_s + horizon.start_s
        lag = model.lag if self.drain else 0.0
        is_behind = lag > REACTS_AT * self.objective_s * load
        caution = self.caution * bound_s / (bound_s + self.objective_s)
        sizing = JobSizing(model, caution, believes_bounds=is_behind)
        low, high = min(map(min, paths)), max(map(max, paths))
        most = max(high * 1.3 + lag / max(self.objective_s, interval_s), 1e-9)
        sizing.limit(cost.most_slots, most)
        usual = max(math.fsum(map(math.fsum, paths)) / (len(paths) * horizon.steps), 1e-9)
        # lateness is as dear as the job is large now, also where less is expected
        usual = max(usual, load)
        whole_job = float(sum(sizing.sized(usual).values()))
        terms = Terms(
            step_s=horizon.windows * interval_s,
            downtime_s=horizon.downtime_s,
            start_s=horizon.start_s,
            cooldown_s=cost.cooldown_s,
            objective_s=self.objective_s,
            late_price=self.late_price * whole_job,
            action_price=whole_job * (horizon.downtime_s + ACTION_PRICE * interval_s),
            slots_per_rate=whole_job / usual,
            most_rate=sizing.most,
            is_behind=is_behind,
        )
        candidates, options = _ladder(sizing, max(min(low, usual) * 0.9, most / 50), most)
        present = Option(float(sum(now.values())), sizing.carried(now))
        if terms.is_behind:
            # whoever is behind does not shrink, except for instances that bring nothing
            least = NO_LESS * min(present.rate, sizing.most)
            if sizing.most < high and horizon.downtime_s > 0:
                # what limits it stays: a stop costs for certain what a small gain only promises
                least = SURE_GAIN * present.rate
            kept = [n for n, option in enumerate(options) if option.rate >= least]
            candidates, options = [candidates[n] for n in kept], [options[n] for n in kept]
        waits = sorted({0, 1, horizon.steps // 6, horizon.steps // 3}) if self.action_cost else [0]
        if present.rate < NO_LESS * load:
            # what is too small already gets no cheaper by waiting, and how much comes is not known better later
            waits = [0]
        if model.load is None:
            # a batch longer than the window tells nothing of the load: on old figures no job becomes smaller
            kept = [n for n, option in enumerate(options) if option.slots >= present.slots]
            candidates, options = [candidates[n] for n in kept], [options[n] for n in kept]
        best, never = cheapest_plan(paths, lag, present, options, waits, terms)
        if best.option is not None and options[best.option].slots < present.slots:
            # the stop is certain, what it saves is not
            price = terms.action_price + terms.late_price * max(0.0, best.late_s - never.late_s)
            if never.total - best.total < SAVING * price:
                best = never
        ahead_s = horizon.steps * terms.step_s
        facts = f"load {number(load)} rec/s, {number(low)} to {number(high)} expected within {number(ahead_s)} s"
        carried = number(present.rate)
        if model.bounds:
            carried = f"at least {number(JobSizing(model, caution).carried(now))}, more has not been seen of them"
        facts += f", lag {number(lag)}; {present.slots:.0f} slots carry {carried}"
        notes = _notes(model, sizing, high)
        if best.option is None or best.wait_steps or candidates[best.option] == now:
            late = f"holding is late for {number(never.late_s)} s"
            if best.option is not None and best.wait_steps:
                later = options[best.option].slots
                change = f"{later:.0f} slots pay best in {number(best.wait_steps * terms.step_s)} s, not now"
            else:
                change = f"a change pays once it saves more than {number(terms.action_price / ahead_s)} slots"
                change += f" or {number(terms.action_price / terms.late_price)} s late"
            return Recommendation.hold(f"sluice: {facts}: {late}, {change}{notes}")
        chosen, option = candidates[best.option], options[best.option]
        late = f"late for {number(best.late_s)} s instead of {number(never.late_s)} s"
        if option.rate > present.rate:
            otherwise = f"an outlook below {number(present.rate)}{' and no lag' if lag else ''} would have held"
        else:
            otherwise = f"an outlook above {number(option.rate)} would have kept more"
        reason = f"{_changes(now, chosen)}: {facts}, {option.slots:.0f} carry {number(option.rate)}, {late}"
        return Recommendation(parallelism=chosen, reason=f"sluice: {reason}; {otherwise}{notes}")

    def _horizon(self, interval_s: float, cost: ActionCost, steady_windows: int) -> _Horizon:
        """Two windows, the cooldown, the stop itself, and the time in which its lateness is earned back.

        Longer where the load has been steady for longer: what has lasted is likely to last as long again.
        """
        downtime_s = start_s = 0.0
        if self.action_cost:
            unknown_s = max(UNKNOWN_DOWNTIME_S, UNKNOWN_DOWNTIME * cost.cooldown_s)
            downtime_s = unknown_s if cost.downtime_s is None else cost.downtime_s
            start_s = cost.start_s or 0.0
        stopped_s = downtime_s + start_s
        late_s = 2 * stopped_s**2 / (stopped_s + self.objective_s)
        whole_s = 2 * interval_s + cost.cooldown_s + stopped_s + self.late_price * late_s
        whole_s = max(whole_s, min(steady_windows * interval_s, LONGER * whole_s))
        windows = max(1, round(whole_s / interval_s / MOST_STEPS))
        steps = min(2 * MOST_STEPS, max(2, math.ceil(whole_s / (windows * interval_s))))
        return _Horizon(steps, windows, downtime_s, start_s)

    def _idle_windows(self, interval_s: float, horizon: _Horizon) -> int:
        """After how many without load the job rests."""
        woken_s = horizon.downtime_s + horizon.start_s
        return max(IDLE_WINDOWS, math.ceil((1 + self.late_price) * woken_s / interval_s))

    def _paths(self, loads: list[float], horizon: _Horizon) -> list[list[float]]:
        """Long steps of a far outlook are forecast two at a time: a minute tells more of a trend than half of one."""
        at_once = 2 if horizon.windows > 1 else 1
        past = in_steps(loads, horizon.windows * at_once) or [math.fsum(loads) / len(loads)]
        coarse = outlook(past, -(-horizon.steps // at_once), trend=self.forecast, band=self.band)
        coarse = after_jump(coarse, past[-1], loads[-1])
        if at_once == 1:
            return coarse
        return [[value for value in path for _ in range(at_once)][: horizon.steps] for path in coarse]


def _at_rest(observation: Observation, idle: int, rests_after: int) -> Recommendation:
    now = observation.parallelism
    if max(now.values()) == 1:
        return Recommendation.hold("sluice: nothing arrives, and 1 instance of each operator is the least")
    if idle < rests_after:
        left_s = (rests_after - idle) * observation.interval_s
        return Recommendation.hold(
            f"sluice: nothing arrives; 1 instance of each operator in {number(left_s)} s, once idling has cost as much "
            "as being woken would"
        )
    reason = f"sluice: nothing arrived in {rests_after} windows: 1 instance of each operator until something does"
    return Recommendation(parallelism=dict.fromkeys(now, 1), reason=reason)


def _ladder(sizing: JobSizing, least: float, most: float) -> tuple[list[dict[str, int]], list[Option]]:
    """Configurations for loads from the least to the most, smallest first, each once, and what they carry."""
    ratio = (most / least) ** (1 / (LEVELS - 1))
    candidates: list[dict[str, int]] = []
    options = []
    for level in range(LEVELS):
        load = least * ratio**level
        sized = sizing.sized(load)
        if not candidates or sized != candidates[-1]:
            candidates.append(sized)
            options.append(Option(float(sum(sized.values())), sizing.carried(sized, sized_for=load)))
    return candidates, options


def _notes(model: JobModel, sizing: JobSizing, high: float) -> str:
    notes = f"; kept, input or capacity unknown: {listing(model.unknown)}" if model.unknown else ""
    if model.trust < 0.9:
        notes += f"; at its limit the job carried {model.trust:.0%} of what its operators promised"
    if sizing.most < high:
        limited = [name for name, curve in model.curves.items() if curve.is_limited]
        what = f"more instances of {listing(limited)} do not help" if limited else "there are no slots"
        notes += f"; {what} beyond {number(sizing.most)} rec/s"
    return notes


def _changes(now: Mapping[str, int], chosen: Mapping[str, int]) -> str:
    changed = sorted((name for name in chosen if chosen[name] != now[name]), key=lambda n: -abs(chosen[n] - now[n]))
    return listing((f"{name} {now[name]} -> {chosen[name]}" for name in changed), of=len(changed))
