"""Samples of all sizes for the operators of a running pipeline, kept as they come: a pass that ended goes on later."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from sluice.errors import BadInputError
from sluice.files import replace_file
from sluice.lab.size_files import foreign
from sluice.learning.performance import TunedModel, tuned
from sluice.learning.sampled_sizes import read_samples
from sluice.learning.sampling import ConvergenceRule, DynamicSampling, FixedStepSampling, Sample, SamplingTarget
from sluice.model import InstanceSize

AS_IT_IS = ConvergenceRule(windows=1, max_windows=2)
"""For rates that have converged already."""
Samples = dict[str, tuple[Sample, ...]]
Said = Callable[[str], object]


class KnownSampling:
    """A `SamplingTarget` that has some sizes already: those are read from the file, all others are measured."""

    def __init__(
        self,
        target: SamplingTarget,
        known: Mapping[str, Sample],
        convergence: ConvergenceRule,
        on_sample: Callable[[Sample], None],
    ) -> None:
        self._target = target
        self._known = dict(known)
        self._convergence = convergence
        self._on_sample = on_sample

    def rates(self, size: InstanceSize) -> Iterator[float]:
        """One window, with the converged rate."""
        if size.name not in self._known:
            windows = self._target.rates(size)
            try:
                self._known[size.name] = self._convergence.measure(size, windows)
            finally:
                close = getattr(windows, "close", None)
                if close is not None:
                    close()
            self._on_sample(self._known[size.name])
        yield self._known[size.name].rate


def check_samples(path: Path, operators: Collection[str]) -> None:
    """Bad input if what is there cannot be gone on with: it is broken, or another pipeline's."""
    found = _read(path)
    if others := [name for name in found if foreign(name, operators)]:
        raise BadInputError(
            f"samples file {str(path)!r} has operator {others[0]!r}, this pipeline {', '.join(operators)}: "
            f"give another --out"
        )


def sample_operators(
    targets: Mapping[str, SamplingTarget],
    sizes: Sequence[InstanceSize],
    sampler: DynamicSampling | FixedStepSampling,
    convergence: ConvergenceRule,
    path: Path,
    say: Said,
) -> Samples:
    """Sample operator after operator, smallest size first; `path` has every sample as soon as it was taken.

    A sample of a size that is not offered as it was then does not count, and is replaced when that name is sampled.
    """
    found = _read(path)
    for operator, target in targets.items():
        known = {one.size.name: one for one in found.get(operator, ()) if any(_alike(one.size, size) for size in sizes)}

        def keep(sample: Sample, operator: str = operator) -> None:
            others = [one for one in found.get(operator, ()) if one.size.name != sample.size.name]
            found[operator] = (*others, sample)
            write_samples(path, found)
            settled = "" if sample.converged else ", not converged"
            say(f"{operator} on {sample.size.name}: {sample.rate:,.0f} rec/s after {sample.windows} windows{settled}")

        sampler.sample(KnownSampling(target, known, convergence, keep), sizes, AS_IT_IS)
    return found


def _read(path: Path) -> Samples:
    return read_samples(str(path)) if path.exists() else {}


def _alike(one: InstanceSize, other: InstanceSize) -> bool:
    return (one.name, one.cpu_cores, one.memory_mb) == (other.name, other.cpu_cores, other.memory_mb)


def write_samples(path: Path, samples: Mapping[str, Sequence[Sample]]) -> None:
    data = {name: [one.to_data() for one in taken] for name, taken in samples.items()}
    replace_file(path, json.dumps(data, indent=2).encode(), durable=True)


def models_of(samples: Mapping[str, Sequence[Sample]]) -> dict[str, TunedModel]:
    """A model for every operator, its settings searched by cross-validation."""
    if not samples:
        raise BadInputError("no operator has a sample")
    return {name: tuned(taken) for name, taken in samples.items()}


def rates_of(models: Mapping[str, TunedModel], sizes: Sequence[InstanceSize]) -> dict[str, dict[str, float]]:
    """What `--set performance=FILE` takes: sampled where a size was sampled, predicted elsewhere."""
    return {
        name: {size.name: rate for size, rate in zip(sizes, one.model.known_rates(sizes), strict=True) if rate > 0}
        for name, one in models.items()
    }
