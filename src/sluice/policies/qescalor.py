"""QEScalor: instances of the right sizes, planned ahead over a horizon and re-planned every epoch.

Mu et al., "QEScalor: Quantitative Elastic Scaling Framework in Distributed Streaming Processing" (ICCS 2020).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.dataflow.numbers import LARGEST, listing, number
from sluice.dataflow.rates import selectivities
from sluice.errors import needs_extra
from sluice.learning.epoch_flow import EpochFlow
from sluice.learning.epoch_outlook import EpochOutlook, newest_epoch, worst_error
from sluice.learning.forecast import EpochLoad, EpochState, Forecaster
from sluice.learning.instance_sizes import ONE_SIZE, load_profile, price_table
from sluice.learning.node_plan import NodeTypes, expected_mix, lacking, unavailable, with_those_ahead
from sluice.model import InstanceSize, Observation
from sluice.model.recommendation import InstanceMix, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

with needs_extra("policy 'qescalor'", "learning"):
    from sluice.learning.qcesa import ScalingCosts, SizeOption, plan_within
    from sluice.learning.sampled_sizes import SampledSizes, load_samples
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

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        recommendation, kept = self._decided(observation, memory)
        states = [EpochState.model_validate(data) for data in kept["epochs"].values()]
        return recommendation.model_copy(update={"learned": self._outlook.learned(states)}), kept

    def _decided(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        seen = selectivities(observation)
        selectivity = {name: {**memory.get("selectivity", {}).get(name, {}), **values} for name, values in seen.items()}
        running = {name: self._rates.running(name, one, memory) for name, one in observation.operators.items()}
        outlook = self._outlook
        epochs, is_new = outlook.seen_loads(observation, memory.get("epochs", {}))
        learned = self._rates.learned(
            observation,
            running,
            memory,
            is_new_epoch=is_new,
            expected=lambda name, mix: self._expected(name, mix, observation, memory),
        )
        sampled, factors = learned.sampled, learned.factors
        speeds = {}
        if self.forecast_speed:
            speeds = outlook.seen_speeds(observation.time_s, factors, memory.get("speeds", {}))
        flow = EpochFlow(epochs=self.epochs, max_error=self.max_error, catch_up_s=self.catch_up_s)
        outputs = flow.seen(observation, seen, memory.get("outputs", {})) if self.forecast_output else {}
        kept: dict[str, Any] = {
            "selectivity": selectivity,
            "outputs": {name: {to: state.to_data() for to, state in found.items()} for name, found in outputs.items()},
            "factors": factors,
            "sampled": {name: found.to_data() for name, found in sampled.items()},
            "speeds": {name: state.to_data() for name, state in speeds.items()},
            "mixes": running,
            "epochs": {name: state.to_data() for name, state in epochs.items()},
            "acted_s": memory.get("acted_s"),
            "requested": memory.get("requested", {}),
            "plan": memory.get("plan"),
        }
        missing = [name for name in observation.topology.sources if name not in epochs]
        if missing:
            return Recommendation.hold(
                f"qescalor: arrival rate unknown at {len(missing)} sources: {listing(missing)}"
            ), kept

        epoch = newest_epoch(epochs.values())
        now = {name: outlook.now(state, observation.operators[name]) for name, state in epochs.items()}
        arriving = flow.loads(observation, selectivity, {}, {name: [load] for name, load in now.items()})
        ahead = {name: outlook.ahead(state, now[name]) for name, state in epochs.items()}
        loads = flow.loads(observation, selectivity, outputs, ahead)
        known = {
            name: outlook.at_speed(load, speeds.get(name), factors[name])
            for name, load in loads.items()
            if load is not None and name in factors
        }
        if not known:
            return Recommendation.hold(f"qescalor: no rate or no load known for any of {len(loads)} operators"), kept
        types = observation.node_types
        expected = {name: self._expected(name, mix, observation, memory) for name, mix in running.items()}
        options = {
            name: self._options(name, sampled, factors[name], unavailable(types) - running[name].keys())
            for name in known
        }
        present = {name: [(arriving[name] or [0.0])[0]] for name in known}
        if self.share_nodes:
            if unknown := [name for name in running if name not in known]:
                return Recommendation.hold(f"qescalor: nodes are shared and {listing(unknown)} is not known yet"), kept
            present, _ = _joined(present, options)
            known, options = _joined(known, options)
            running = {JOB: dict(next(iter(running.values())))}
            expected = {JOB: self._expected(JOB, running[JOB], observation, memory)}
        short = [name for name in known if present[name][0] > _capacity(expected[name], options[name]) * SLACK]
        refused = sorted(
            {
                size
                for name in known
                for size in lacking(memory.get("requested", {}).get(name, {}), running[name])
                if size in unavailable(types)
            }
        )
        error = worst_error(epochs.values())
        measures = {} if error is None else {"forecast_error": min(error, LARGEST)}
        waits = kept["acted_s"] is not None and 0 <= observation.time_s - kept["acted_s"] < self.catch_up_s
        if not is_new and not refused and (waits or not short):
            early = self._early(observation, expected, memory)
            if early == expected:
                why = f"qescalor: epoch {epoch} goes on, {self._explain(known)}"
                return Recommendation.hold(why, measures), kept
            return self._requested(observation, early, self._early_reason(expected, early, types), measures, kept)

        plans = {
            name: plan_within(
                load, options[name], self._costs, expected[name], max_instances=self.max_instances, max_mixes=MAX_MIXES
            )
            for name, load in known.items()
        }
        kept["plan"] = {
            "index": epoch,
            "mixes": {name: list(plan.mixes) for name, plan in plans.items()},
        }
        mixes = self._early(observation, running | {name: plan.mixes[0] for name, plan in plans.items()}, kept)
        for name, found in sampled.items():
            if found.stale and not found.under_way and name in known and mixes[name] == running[name]:
                total = _capacity(running[name], options[name]) / self.target_utilisation
                kept["sampled"][name] = found.begun(total).to_data()
                mixes[name] = running[name] | {found.stale[0]: running[name].get(found.stale[0], 0) + 1}
        why = self._reason(epochs, is_new, short, expected, mixes, known)
        if refused:
            why += f"; no {listing(refused)} can be had now, planned without"
        if mixes == expected:
            return Recommendation.hold(f"{why}; all mixes stay", measures), kept
        return self._requested(observation, mixes, why, measures, kept)

    def _requested(
        self,
        observation: Observation,
        mixes: dict[str, InstanceMix],
        why: str,
        measures: dict[str, float],
        kept: dict[str, Any],
    ) -> tuple[Recommendation, Memory]:
        sizes = dict.fromkeys(observation.operators, mixes[JOB]) if self.share_nodes else mixes
        recommendation = Recommendation(
            parallelism={name: sum(mix.values()) for name, mix in sizes.items()},
            sizes=sizes if self.recommends_sizes else {},
            shared_nodes=self.share_nodes,
            reason=f"{why}, shared by all {len(sizes)} operators" if self.share_nodes else why,
            measures=measures,
        )
        return recommendation, kept | {"mixes": sizes, "requested": mixes, "acted_s": observation.time_s}

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

    def _options(
        self, name: str, sampled: Mapping[str, SampledSizes], factor: float, without: Collection[str]
    ) -> list[SizeOption]:
        """All sizes but those that cannot be had; if none can, all the same: something is to be requested."""
        profile = self._rates.rates(name, sampled)
        profile = {size: rate for size, rate in profile.items() if size not in without} or profile
        hours = self.epoch_s / 3600
        return [
            SizeOption(
                name=size.name,
                performance=factor * profile[size.name] * self.target_utilisation,
                price=size.price_per_hour * hours,
            )
            for size in self.sizes
            if size.name in profile
        ]

    @property
    def _costs(self) -> ScalingCosts:
        standard = standard_size(self.sizes)
        per_second = standard.price_per_hour / standard.cpu_cores / 3600
        return ScalingCosts(startup=self.startup_cost_s * per_second, shutdown=self.shutdown_cost_s * per_second)

    def _reason(
        self,
        epochs: Mapping[str, EpochState],
        is_new: bool,
        short: Sequence[str],
        before: Mapping[str, InstanceMix],
        after: Mapping[str, InstanceMix],
        loads: Mapping[str, Sequence[float]],
    ) -> str:
        when = f"epoch {newest_epoch(epochs.values())}"
        if not is_new:
            when += f" again, {listing(short)} fell short" if short else " again"
        changes = [
            f"{name} {_words(before[name])} -> {_words(after[name])} for {number(loads[name][0])} rec/s"
            for name in loads
            if before[name] != after[name]
        ]
        explained = listing(changes) if changes else self._explain(loads)
        return f"qescalor: {when}, {self._outlook.words(epochs.values())}, {self.horizon} epochs ahead: {explained}"

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
