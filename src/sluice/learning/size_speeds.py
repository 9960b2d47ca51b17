"""What one instance of every size does for an operator: a profile or samples, corrected by production. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sluice.dataflow.numbers import ratio
from sluice.learning.instance_sizes import load_profile
from sluice.learning.sampled_sizes import SampledSizes, load_samples
from sluice.model import InstanceSize, Observation, OperatorMetrics
from sluice.model.recommendation import InstanceMix
from sluice.protocol import Memory

CALIBRATION_GAIN = 0.3
"""How much of a new measurement enters the factor between the profile's rates and production's."""

Expected = Callable[[str, InstanceMix], InstanceMix]
"""The mix that an operator, which runs this one, will have once all that was requested is there."""


@dataclass(frozen=True)
class LearnedSpeeds:
    """After a window: the samples of operators that have some, and production over profile where that is known."""

    sampled: dict[str, SampledSizes]
    factors: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class SizeSpeeds:
    """`performance` and `samples` are files, each of them empty if there is none; without both, cores count."""

    sizes: tuple[InstanceSize, ...]
    performance: str = ""
    samples: str = ""

    def rates(self, name: str, sampled: Mapping[str, SampledSizes]) -> dict[str, float]:
        """Records/s of one instance, by size, before production's factor."""
        if name in sampled:
            return sampled[name].rates(self.sizes)
        return load_profile(self.performance).of(name, self.sizes)

    def running(self, name: str, metrics: OperatorMetrics, memory: Memory) -> InstanceMix:
        """As the engine reports it, else as last recommended if the number fits, else all of the standard size."""
        known = {size.name for size in self.sizes}
        for mix in (metrics.sizes, memory.get("mixes", {}).get(name)):
            if mix and mix.keys() <= known and sum(mix.values()) == metrics.parallelism:
                return {size: count for size, count in mix.items() if count}
        return {standard_size(self.sizes).name: metrics.parallelism}

    def learned(
        self,
        observation: Observation,
        running: Mapping[str, InstanceMix],
        memory: Memory,
        *,
        is_new_epoch: bool,
        expected: Expected,
    ) -> LearnedSpeeds:
        """After this window.

        While a size is being sampled its rate is what is not known, so the factor stays; if production contradicts the
        samples at the end of an epoch they are refitted, and the factor begins anew. A mix that is not the recommended
        one ends sampling.
        """
        sampled = dict(load_samples(self.samples))
        sampled |= {name: SampledSizes.model_validate(data) for name, data in memory.get("sampled", {}).items()}
        factors: dict[str, float] = {}
        for name, metrics in observation.operators.items():
            mix, found = running[name], sampled.get(name)
            last: float | None = memory.get("factors", {}).get(name)
            if found is not None and found.under_way:
                requested = memory.get("requested", {}).get(name)
                if mix == requested:
                    found = _read(found, metrics)
                    sampled[name] = found.ended(self.sizes) if is_new_epoch else found
                elif expected(name, mix) == mix:
                    sampled[name] = found.given_up()
                factors[name] = 1.0 if last is None else last
                continue
            factor = _calibrated(metrics, mix, self.rates(name, sampled), last)
            if factor is None:
                continue
            factors[name] = factor
            # one window may be off by chance or because instances are new; an epoch's are not
            if found is not None and is_new_epoch and last is not None:
                sampled[name] = found.contradicted(mix, self.sizes, factor)
                if sampled[name] is not found:
                    factors[name] = 1.0
        return LearnedSpeeds({name: one for name, one in sampled.items() if name in observation.operators}, factors)


def standard_size(sizes: Sequence[InstanceSize]) -> InstanceSize:
    """The size nearest to one core: what an instance is when no size was chosen."""
    return min(sizes, key=lambda size: abs(size.cpu_cores - 1))


def _read(found: SampledSizes, metrics: OperatorMetrics) -> SampledSizes:
    """One window of a size that is sampled again; an engine that tells sizes apart has measured it itself."""
    measured = (metrics.size_rates or {}).get(found.stale[0])
    if measured is not None:
        return found.measured(measured)
    rate = metrics.per_instance_rate()
    return found if rate is None else found.read(rate * metrics.parallelism)


def _calibrated(
    metrics: OperatorMetrics, mix: InstanceMix, profile: Mapping[str, float], last: float | None
) -> float | None:
    """Production's rate over the profile's; smoothed, and as last known while the operator has nothing to do."""
    rate = metrics.per_instance_rate()
    expected = sum(count * profile.get(size, 0.0) for size, count in mix.items())
    now = None if rate is None else ratio(rate * metrics.parallelism, expected)
    if now is None or not now * min(profile.values(), default=0.0) > 0:
        return last
    return now if last is None else last + CALIBRATION_GAIN * (now - last)
