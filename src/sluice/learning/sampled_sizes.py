"""The samples an operator's performance model is fitted to, kept true by production (QEScalor paper, section 2.2).

When production contradicts the model, only the total of what is running is known anew: a size is known if it runs
alone, all others are guesses. Each of those is sampled again, one per epoch: an instance of it joins those that run,
and its rate is what the total gains by it. Pure: the state is data.
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
    """One operator's samples, and the sizes on offer that are to be sampled again, the one under way first.

    `base_rate` is the total before that one joined, null while none is under way; `readings` are what it gained.
    """

    samples: tuple[Sample, ...]
    stale: tuple[Name, ...] = ()
    base_rate: NonNegative | None = None
    readings: tuple[NonNegative, ...] = ()

    @property
    def under_way(self) -> bool:
        return self.base_rate is not None

    def rates(self, sizes: Sequence[InstanceSize]) -> dict[str, float]:
        return dict(_rates(self.samples, tuple(sizes)))

    def contradicted(self, mix: Mapping[str, int], sizes: Sequence[InstanceSize], factor: float) -> SampledSizes:
        """Production does `factor` times what the model says of this mix: refit if that is too far off."""
        if abs(factor - 1) <= CONTRADICTION:
            return self
        offered = {size.name: size for size in sizes}
        rates = self.rates(sizes)
        seen = [Sample(size=offered[name], rate=factor * rates[name]) for name in mix if name in rates]
        corrected = PerformanceModel(self.samples).corrected(seen, tolerance=CONTRADICTION)
        guessed = sorted(offered, key=lambda name: name in mix)
        return SampledSizes(
            samples=corrected.samples, stale=tuple(name for name in guessed if len(mix) > 1 or name not in mix)
        )

    def begun(self, total: float) -> SampledSizes:
        """An instance of the first stale size joins what does `total` now."""
        return self.model_copy(update={"base_rate": total, "readings": ()})

    def read(self, total: float) -> SampledSizes:
        """One window with that instance."""
        gained = max(total - (self.base_rate or 0.0), 0.0)
        return self.model_copy(update={"readings": (*self.readings, gained)})

    def measured(self, rate: float) -> SampledSizes:
        """One window with that instance, whose own rate the engine has measured."""
        return self.model_copy(update={"readings": (*self.readings, rate)})

    def given_up(self) -> SampledSizes:
        """Something else changed too: what was read says nothing."""
        return self.model_copy(update={"base_rate": None, "readings": ()})

    def ended(self, sizes: Sequence[InstanceSize]) -> SampledSizes:
        """The epoch is over: the mean of its readings is the size's new sample."""
        if not any(self.readings):
            return self.given_up()
        size = next(size for size in sizes if size.name == self.stale[0])
        same = (size.cpu_cores, size.memory_mb)
        kept = [known for known in self.samples if (known.size.cpu_cores, known.size.memory_mb) != same]
        taken = Sample(size=size, rate=fmean(self.readings), windows=len(self.readings))
        return SampledSizes(samples=(*kept, taken), stale=self.stale[1:])


@lru_cache(maxsize=64)
def _rates(samples: tuple[Sample, ...], sizes: tuple[InstanceSize, ...]) -> Mapping[str, float]:
    """A forest takes milliseconds to ask, and a policy asks every window."""
    found = PerformanceModel(samples).known_rates(sizes)
    return {size.name: rate for size, rate in zip(sizes, found, strict=True) if rate > 0}


@lru_cache(maxsize=32)
def load_samples(path: str) -> Mapping[str, SampledSizes]:
    """As they were when a policy first asked; an empty path has none."""
    return {name: SampledSizes(samples=taken) for name, taken in read_samples(path).items()} if path else {}


def read_samples(path: str) -> dict[str, tuple[Sample, ...]]:
    """From a JSON file `{operator: [{"size": {...}, "rate": records/s}, ...]}`."""
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
    return samples
