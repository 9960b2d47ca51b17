"""The samples an operator's performance model is fitted to, kept true by production (QEScalor paper, section 2.2).

When production contradicts the model, what is running is known anew and all other sizes are guesses. Each of those is
sampled again, one per epoch: an instance of it runs beside the planned ones, and its rate is what the total exceeds
theirs by. Pure: the state is data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter, ValidationError

from sluice.errors import BadInputError
from sluice.learning.performance import PerformanceModel
from sluice.learning.sampling import Sample
from sluice.model import InstanceSize
from sluice.model.base import Frozen, Name, NonNegative, first_problem

CONTRADICTION = 0.15
"""Production that is off by more than this share contradicts the model."""
_SAMPLES = TypeAdapter(dict[Name, tuple[Sample, ...]])


class SampledSizes(Frozen):
    """One operator's samples; `stale` are the sizes on offer to sample again, `readings` those of the one under way."""

    samples: tuple[Sample, ...]
    stale: tuple[Name, ...] = ()
    readings: tuple[NonNegative, ...] = ()

    def rates(self, sizes: Sequence[InstanceSize]) -> dict[str, float]:
        return dict(_rates(self.samples, tuple(sizes)))

    def stale_in(self, mix: Mapping[str, int]) -> str | None:
        return next((name for name in self.stale if mix.get(name)), None)

    def contradicted(self, mix: Mapping[str, int], sizes: Sequence[InstanceSize], factor: float) -> SampledSizes:
        """Production does `factor` times what the model says of this mix: refit if that is too far off."""
        offered = {size.name: size for size in sizes}
        rates = self.rates(sizes)
        seen = [Sample(size=offered[name], rate=factor * rates[name]) for name in mix if name in rates]
        model = PerformanceModel(self.samples)
        corrected = model.corrected(seen, tolerance=CONTRADICTION)
        if corrected is model:
            return self
        return SampledSizes(samples=corrected.samples, stale=tuple(name for name in offered if name not in mix))

    def read(self, mix: Mapping[str, int], sizes: Sequence[InstanceSize], total: float) -> SampledSizes:
        """One window with a stale size in the mix; `total` is what the whole mix can do."""
        name = self.stale_in(mix)
        if name is None:
            return self
        rates = self.rates(sizes)
        others = sum(count * rates.get(size, 0.0) for size, count in mix.items() if size != name)
        rate = (total - others) / mix[name]
        return self.model_copy(update={"readings": (*self.readings, rate)}) if rate > 0 else self

    def sampled(self, mix: Mapping[str, int], sizes: Sequence[InstanceSize]) -> SampledSizes:
        """The epoch is over: the mean of its readings is the size's new sample."""
        name = self.stale_in(mix)
        if name is None or not self.readings:
            return self
        size = next(size for size in sizes if size.name == name)
        same = (size.cpu_cores, size.memory_mb)
        kept = [known for known in self.samples if (known.size.cpu_cores, known.size.memory_mb) != same]
        taken = Sample(size=size, rate=fmean(self.readings), windows=len(self.readings))
        return SampledSizes(samples=(*kept, taken), stale=tuple(other for other in self.stale if other != name))


@lru_cache(maxsize=64)
def _rates(samples: tuple[Sample, ...], sizes: tuple[InstanceSize, ...]) -> Mapping[str, float]:
    """A forest takes milliseconds to ask, and a policy asks every window."""
    found = PerformanceModel(samples).known_rates(sizes)
    return {size.name: rate for size, rate in zip(sizes, found, strict=True) if rate > 0}


@lru_cache(maxsize=32)
def load_samples(path: str) -> Mapping[str, SampledSizes]:
    """From a JSON file `{operator: [{"size": {...}, "rate": records/s}, ...]}`; an empty path has none."""
    if not path:
        return {}
    try:
        samples = _SAMPLES.validate_python(json.loads(Path(path).read_text()))
    except OSError as error:
        raise BadInputError(f"samples file {path!r} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise BadInputError(f"samples file {path!r}: {first_problem(error)}") from error
    except ValueError as error:
        raise BadInputError(f"samples file {path!r} is no JSON: {error}") from error
    if empty := [name for name, taken in samples.items() if not taken]:
        raise BadInputError(f"samples file {path!r}: operator {empty[0]!r} has no sample")
    return {name: SampledSizes(samples=taken) for name, taken in samples.items()}
