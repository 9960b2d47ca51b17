"""QEScalor: instances of the right sizes, planned ahead over a horizon and re-planned every epoch.

Mu et al., "QEScalor: Quantitative Elastic Scaling Framework in Distributed Streaming Processing" (ICCS 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.numbers import LARGEST, listing, number
from sluice.dataflow.rates import selectivities
from sluice.errors import needs_extra
from sluice.learning.epoch_flow import EpochFlow
from sluice.learning.epoch_outlook import EpochOutlook, worst_error
from sluice.learning.forecast import EpochLoad, Forecaster
from sluice.learning.instance_sizes import ONE_SIZE, load_profile, price_table
from sluice.learning.node_plan import (
    NodeTypes,
    expected_mix,
    lacking,
    most_to_be_had,
    unavailable,
    with_those_ahead,
)
from sluice.model import InstanceSize, Observation
from sluice.model.recommendation import InstanceMix, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

with needs_extra("policy 'qescalor'", "learning"):
    from sluice.learning.epoch_problem import EpochProblem, EpochWindow
    from sluice.learning.qcesa import ScalingCosts, SizeOption, plan_within
    from sluice.learning.sampled_sizes import load_samples
    from sluice.learning.shared_nodes import JOB, joined
    from sluice.learning.size_speeds import SizeSpeeds, standard_size

MAX_MIXES = 200_000
SLACK = 1.05
"""A load this much above the planned capacity is acted on within an epoch; the target utilisation covers less."""


@policy("qescalor")
@dataclass(frozen=True, kw_only=True)
class QEScalor:
    """Forecast the load and start the cheapest mix of instance sizes that carries it, re-planned every epoch.

    At the first window of an epoch, QCESA plans `horizon` epochs per operator for the upper end of the forecast, and
    the plan's first mix is recommended. Within an epoch it acts only if load and backlog exceed what was planned,
    and then waits `catch_up_s` for its action to take effect. While the forecast misses by more than `max_error` on
    average it is not used: the present load, and by how much it usually changes, is planned for all epochs, which is
    reacting. Rates of sizes come from `performance` (else in proportion to the cores), times a factor that production
    keeps up to date. With `samples` they come from a model instead, which is refitted when production contradicts it;
    sizes whose rates are guesses then are sampled again, one per epoch with an instance beside those planned.
    Instances are requested so long before their epoch as the engine has seen them take to come (`lead_s` where it does
    not tell). A size that cannot be had is left out of the plan, which is made again at once. With `share_nodes` all
    operators run on all nodes, and one plan chooses them for the whole job.
    """

    horizon: int = parameter(8, "epochs to plan ahead")
    epoch_s: float = parameter(300.0, "length of an epoch: how often a plan is made")
    season_s: float = parameter(86_400.0, "time after which the load repeats itself; 0 if it does not")
    prices: str = parameter("one-size", "price table: one-size, example, or a JSON file (see `sluice sizes`)")
    performance: str = parameter("", "JSON file with measured records/s, {operator: {size: rate}}")
    samples: str = parameter("", "JSON file with samples of sizes, {operator: [{size, rate}]}, instead of performance")
    forecast_speed: bool = parameter(
        False, "plan with the operators' speed forecast by epochs too (the paper's OMOPredictor), not with that of now"
    )
    target_utilisation: float = parameter(0.85, "share of an instance's rate that is planned with")
    band: float = parameter(1.64, "standard deviations of the forecast's error that are planned for on top")
    max_error: float = parameter(0.3, "mean relative error of the forecast above which it is not used")
    startup_cost_s: float = parameter(120.0, "starting an instance costs as much as running one core this long")
    shutdown_cost_s: float = parameter(30.0, "stopping an instance, likewise")
    lead_s: float = parameter(0.0, "time an instance takes to come, for engines that do not measure it")
    share_nodes: bool = parameter(False, "operators share nodes, chosen for all of them together")
    forecast_output: bool = parameter(
        False, "plan with what operators put out per record forecast by epochs too, not with the ratio of now"
    )
    catch_up_s: float = parameter(120.0, "time in which backlog is to be drained")
    max_instances: int = parameter(200, "most instances of an operator")

    def __post_init__(self) -> None:
        for name in ("horizon", "max_instances"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("epoch_s", "catch_up_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("band", "max_error", "startup_cost_s", "shutdown_cost_s", "season_s", "lead_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if not 0 < self.target_utilisation <= 1:
            raise ValueError(f"target_utilisation must be in (0, 1], got {self.target_utilisation}")
        if self.share_nodes and not self.recommends_sizes:
            raise ValueError(f"share_nodes needs sizes to choose among, got prices {self.prices!r}")
        if self.samples and self.performance:
            raise ValueError(f"samples and performance exclude each other, got {self.samples!r}, {self.performance!r}")
        _ = self.sizes, load_profile(self.performance), load_samples(self.samples), self.epochs

    @property
    def sizes(self) -> tuple[InstanceSize, ...]:
        return price_table(self.prices)

    @property
    def recommends_sizes(self) -> bool:
        """False with the one size that every engine runs: the recommendation then is a parallelism."""
        return self.sizes != ONE_SIZE

    @property
    def _rates(self) -> SizeSpeeds:
        return SizeSpeeds(sizes=self.sizes, performance=self.performance, samples=self.samples)

    @property
    def epochs(self) -> EpochLoad:
        season = round(self.season_s / self.epoch_s)
        return EpochLoad(epoch_s=self.epoch_s, forecaster=Forecaster(season=season if season > 1 else 0, z=self.band))

    @property
    def _outlook(self) -> EpochOutlook:
        return EpochOutlook(
            epochs=self.epochs,
            horizon=self.horizon,
            band=self.band,
            max_error=self.max_error,
            catch_up_s=self.catch_up_s,
        )

    @property
    def _flow(self) -> EpochFlow:
        return EpochFlow(epochs=self.epochs, max_error=self.max_error, catch_up_s=self.catch_up_s)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        window = self._seen(observation, memory)
        kept = window.to_memory(memory)
        problem = self._problem(observation, memory, window)
        if isinstance(problem, str):
            recommendation = Recommendation.hold(f"qescalor: {problem}")
        else:
            error = worst_error(window.epochs.values())
            measures = {} if error is None else {"forecast_error": min(error, LARGEST)}
            acted_s = memory.get("acted_s")
            waits = acted_s is not None and 0 <= observation.time_s - acted_s < self.catch_up_s
            newly_refused = set(problem.refused) - set(memory.get("refused", ()))
            is_due = window.is_new or newly_refused or (problem.short and not waits)
            kept["refused"] = problem.refused
            mixes, why = (self._planned if is_due else self._going_on)(observation, window, problem, kept)
            if mixes == problem.expected:
                recommendation = Recommendation.hold(f"{why}; all mixes stay" if is_due else why, measures)
            else:
                recommendation = self._recommended(observation, mixes, why, measures)
                kept |= {"requested": mixes, "acted_s": observation.time_s}
                kept["mixes"] = dict.fromkeys(observation.operators, mixes[JOB]) if self.share_nodes else mixes
        learned = self._outlook.learned(list(window.epochs.values()))
        return recommendation.model_copy(update={"learned": learned}), kept

    def _seen(self, observation: Observation, memory: Memory) -> EpochWindow:
        ratios = selectivities(observation)
        before = memory.get("selectivity", {})
        running = {name: self._rates.running(name, one, memory) for name, one in observation.operators.items()}
        epochs, is_new = self._outlook.seen_loads(observation, memory.get("epochs", {}))
        learned = self._rates.learned(
            observation,
            running,
            memory,
            is_new_epoch=is_new,
            expected=lambda name, mix: self._expected(name, mix, observation, memory),
        )
        speeds, outputs = {}, {}
        if self.forecast_speed:
            speeds = self._outlook.seen_speeds(observation.time_s, learned.factors, memory.get("speeds", {}))
        if self.forecast_output:
            outputs = self._flow.seen(observation, ratios, memory.get("outputs", {}))
        return EpochWindow(
            running=running,
            selectivity={name: {**before.get(name, {}), **values} for name, values in ratios.items()},
            outputs=outputs,
            epochs=epochs,
            is_new=is_new,
            sampled=learned.sampled,
            factors=learned.factors,
            speeds=speeds,
        )

    def _problem(self, observation: Observation, memory: Memory, window: EpochWindow) -> EpochProblem | str:
        """What is to be planned, or why nothing can be."""
        outlook, epochs, running = self._outlook, window.epochs, window.running
        if missing := [name for name in observation.topology.sources if name not in epochs]:
            return f"arrival rate unknown at {len(missing)} sources: {listing(missing)}"
        now = {name: outlook.now(state, observation.operators[name]) for name, state in epochs.items()}
        arriving = self._flow.loads(observation, window.selectivity, {}, {name: [load] for name, load in now.items()})
        ahead = {name: outlook.ahead(state, now[name]) for name, state in epochs.items()}
        every = self._flow.loads(observation, window.selectivity, window.outputs, ahead)
        loads = {
            name: outlook.at_speed(load, window.speeds.get(name), window.factors[name])
            for name, load in every.items()
            if load is not None and name in window.factors
        }
        if not loads:
            return f"no rate or no load known for any of {len(every)} operators"
        present = {name: [(arriving[name] or [0.0])[0]] for name in loads}
        absent = unavailable(observation.node_types)
        most = {name: most_to_be_had(running[name], observation.node_types) for name in loads}
        options = {name: self._options(name, window, most[name]) for name in loads}
        if self.share_nodes:
            if unknown := [name for name in running if name not in loads]:
                return f"nodes are shared and {listing(unknown)} is not known yet"
            if not set.intersection(*({option.name for option in offered} for offered in options.values())):
                return "nodes are shared and no size is known to all operators"
            present, _ = _joined(present, options)
            loads, options = _joined(loads, options)
            running = {JOB: dict(next(iter(running.values())))}
        expected = {name: self._expected(name, mix, observation, memory) for name, mix in running.items()}
        requested = memory.get("requested", {})
        return EpochProblem(
            loads=loads,
            options=options,
            running=running,
            expected=expected,
            short=[name for name in loads if present[name][0] > _capacity(expected[name], options[name]) * SLACK],
            refused=sorted(
                {one for name in loads for one in lacking(requested.get(name, {}), expected[name])} & absent
            ),
        )

    def _going_on(
        self, observation: Observation, window: EpochWindow, problem: EpochProblem, kept: dict[str, Any]
    ) -> tuple[dict[str, InstanceMix], str]:
        """Within an epoch: only what its successors need so soon that it is requested now."""
        early = self._early(observation, problem.expected, kept)
        if early == problem.expected:
            return early, f"qescalor: epoch {window.epoch} goes on, {self._explain(problem.loads)}"
        return early, self._early_reason(problem.expected, early, observation.node_types)

    def _planned(
        self, observation: Observation, window: EpochWindow, problem: EpochProblem, kept: dict[str, Any]
    ) -> tuple[dict[str, InstanceMix], str]:
        """A new plan, its first epoch now, and the next size that is to be sampled again beside it."""
        plans = {
            name: plan_within(
                load,
                problem.options[name],
                self._costs,
                problem.expected[name],
                max_instances=self.max_instances,
                max_mixes=MAX_MIXES,
            )
            for name, load in problem.loads.items()
        }
        kept["plan"] = {"index": window.epoch, "mixes": {name: list(plan.mixes) for name, plan in plans.items()}}
        running = problem.running
        mixes = self._early(observation, running | {name: plan.mixes[0] for name, plan in plans.items()}, kept)
        for name, found in window.sampled.items():
            if found.stale and not found.under_way and name in problem.loads and mixes[name] == running[name]:
                total = _capacity(running[name], problem.options[name]) / self.target_utilisation
                kept["sampled"][name] = found.begun(total).to_data()
                mixes[name] = running[name] | {found.stale[0]: running[name].get(found.stale[0], 0) + 1}
        return mixes, self._reason(window, problem, mixes)

    def _recommended(
        self, observation: Observation, mixes: dict[str, InstanceMix], why: str, measures: dict[str, float]
    ) -> Recommendation:
        sizes = dict.fromkeys(observation.operators, mixes[JOB]) if self.share_nodes else mixes
        return Recommendation(
            parallelism={name: sum(mix.values()) for name, mix in sizes.items()},
            sizes=sizes if self.recommends_sizes else {},
            shared_nodes=self.share_nodes,
            reason=f"{why}, shared by all {len(sizes)} operators" if self.share_nodes else why,
            measures=measures,
        )

    def _expected(self, name: str, running: InstanceMix, observation: Observation, memory: Memory) -> InstanceMix:
        acted_s = memory.get("acted_s")
        waited_s = None if acted_s is None else observation.time_s - acted_s
        return expected_mix(memory.get("requested", {}).get(name), running, observation.node_types, waited_s)

    def _early(self, observation: Observation, mixes: dict[str, InstanceMix], memory: Memory) -> dict[str, InstanceMix]:
        """The mixes, with what the plan's next epochs need and what takes so long to come that it is requested now."""
        plan = memory.get("plan")
        if not plan:
            return mixes
        start_s = dict.fromkeys((size.name for size in self.sizes), self.lead_s)
        start_s |= {name: one.start_s for name, one in observation.node_types.items()}
        return with_those_ahead(mixes, plan["mixes"], plan["index"], observation.time_s, self.epoch_s, start_s)

    def _early_reason(
        self, before: Mapping[str, InstanceMix], after: Mapping[str, InstanceMix], types: NodeTypes
    ) -> str:
        """Which instances are requested before their epoch, and how long they take."""
        starts = [
            f"{count} {size} for {name}, which takes {types[size].start_s if size in types else self.lead_s:.0f} s"
            for name in after
            for size, count in lacking(after[name], before[name]).items()
        ]
        return f"qescalor: ahead of the next epoch: {listing(starts)}"

    def _options(self, name: str, window: EpochWindow, most: Mapping[str, int]) -> list[SizeOption]:
        """All sizes but those of which none can be had; if there are no more of any, those that run."""
        profile = self._rates.rates(name, window.sampled)
        profile = {size: rate for size, rate in profile.items() if most.get(size, 1) > 0} or profile
        bounds = most if profile.keys() - most.keys() else {}
        hours = self.epoch_s / 3600
        return [
            SizeOption(
                name=size.name,
                performance=window.factors[name] * profile[size.name] * self.target_utilisation,
                price=size.price_per_hour * hours,
                most=bounds.get(size.name),
            )
            for size in self.sizes
            if size.name in profile
        ]

    @property
    def _costs(self) -> ScalingCosts:
        standard = standard_size(self.sizes)
        per_second = standard.price_per_hour / standard.cpu_cores / 3600
        return ScalingCosts(startup=self.startup_cost_s * per_second, shutdown=self.shutdown_cost_s * per_second)

    def _reason(self, window: EpochWindow, problem: EpochProblem, mixes: Mapping[str, InstanceMix]) -> str:
        when = f"epoch {window.epoch}"
        if not window.is_new:
            when += f" again, {listing(problem.short)} fell short" if problem.short else " again"
        changes = [
            f"{name} {_words(problem.expected[name])} -> {_words(mixes[name])} for {number(load[0])} rec/s"
            for name, load in problem.loads.items()
            if problem.expected[name] != mixes[name]
        ]
        explained = listing(changes) if changes else self._explain(problem.loads)
        source = self._outlook.words(window.epochs.values())
        refused = f"; no {listing(problem.refused)} can be had now, planned without" if problem.refused else ""
        return f"qescalor: {when}, {source}, {self.horizon} epochs ahead: {explained}{refused}"

    def _explain(self, loads: Mapping[str, Sequence[float]]) -> str:
        return listing(f"{name} planned for {number(load[0])} rec/s" for name, load in loads.items())


def _joined(
    loads: Mapping[str, list[float]], options: Mapping[str, Sequence[SizeOption]]
) -> tuple[dict[str, list[float]], dict[str, list[SizeOption]]]:
    needed, usable = joined(loads, options)
    return {JOB: needed}, {JOB: usable}


def _capacity(mix: InstanceMix, options: Sequence[SizeOption]) -> float:
    return sum(mix.get(option.name, 0) * option.performance for option in options)


def _words(mix: InstanceMix) -> str:
    return "+".join(f"{count} {size}" for size, count in mix.items()) or "nothing"
