"""How fast is one instance of a given size? Sampling while the job runs (QEScalor paper, section 2.2).

A sampling instance gets as much load as it can take, the normal instances carry the rest. It is measured until its
rate has converged; then the next size is tried, until larger ones are no longer faster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from sluice.errors import BadInputError
from sluice.model import InstanceSize
from sluice.model.base import Frozen, NonNegative, Parallelism


class SamplingTarget(Protocol):
    """An engine's side of sampling.

    Assumes: one sampling instance at a time, given more load than it can take.
    """

    def rates(self, size: InstanceSize) -> Iterator[float]:
        """Start a sampling instance and yield its records/s window by window; closing the iterator removes it."""
        ...


class Sample(Frozen):
    """The converged rate of one instance of a size, and how many windows it took to see it."""

    size: InstanceSize
    rate: NonNegative
    windows: Parallelism = 1
    converged: bool = True


@dataclass(frozen=True, kw_only=True)
class ConvergenceRule:
    """A rate has converged when the mean of the last `windows` differs little from the mean of those before.

    Comparing means of blocks ignores noise from window to window but sees a drift, such as code being compiled
    or a cache being filled. What has not settled after `max_windows` is taken as it is, and marked.
    """

    windows: int = 5
    tolerance: float = 0.02
    max_windows: int = 60

    def __post_init__(self) -> None:
        if self.windows < 1:
            raise BadInputError(f"windows must be at least 1, got {self.windows}")
        if not 0 < self.tolerance < 1:
            raise BadInputError(f"tolerance must be in (0, 1), got {self.tolerance}")
        if self.max_windows < 2 * self.windows:
            raise BadInputError(f"max_windows must be at least twice windows, got {self.max_windows}")

    def is_reached(self, rates: Sequence[float]) -> bool:
        k = self.windows
        if len(rates) < 2 * k:
            return False
        last, before = math.fsum(rates[-k:]), math.fsum(rates[-2 * k : -k])
        return abs(last - before) <= self.tolerance * before

    def measure(self, size: InstanceSize, rates: Iterable[float]) -> Sample:
        """Read windows until the rate has converged or there are no more."""
        seen: list[float] = []
        for rate in itertools.islice(rates, self.max_windows):
            seen.append(rate)
            if self.is_reached(seen):
                break
        if not seen:
            raise BadInputError(f"size {size.name!r}: the sampling instance reported no window")
        last = seen[-self.windows :]
        return Sample(size=size, rate=math.fsum(last) / len(last), windows=len(seen), converged=self.is_reached(seen))


def growing_sizes(
    *, count: int, first_cores: float, step_cores: float, memory_mb: float = 0.0, memory_per_core_mb: float = 0.0
) -> tuple[InstanceSize, ...]:
    """Sizes to sample: cores in equal steps, memory with a fixed part and one per core."""
    cores = [round(first_cores + index * step_cores, 6) for index in range(count)]
    return tuple(
        InstanceSize(name=f"{count:g}-cores", cpu_cores=count, memory_mb=memory_mb + memory_per_core_mb * count)
        for count in cores
    )


@dataclass
class _SamplingPass:
    """One pass along the sizes; a position is a number of minimal steps from the first."""

    target: SamplingTarget
    sizes: Sequence[InstanceSize]
    convergence: ConvergenceRule
    taken: dict[int, Sample] = field(default_factory=dict)

    def sample(self, position: int) -> float:
        if position not in self.taken:
            size = self.sizes[position]
            with closing(_closable(self.target.rates(size))) as rates:
                self.taken[position] = self.convergence.measure(size, rates)
        return self.taken[position].rate

    def ordered(self) -> tuple[Sample, ...]:
        return tuple(self.taken[position] for position in sorted(self.taken))


@dataclass(frozen=True, kw_only=True)
class DynamicSampling:
    """DSA, algorithm 1: large steps where the rate hardly changes, small ones and re-sampling where it does.

    `growth` is the relative change of the rate per minimal step. Below `delta_stop` it counts as a stop, and
    `max_stop_count` stops in a row end the pass, as does the last size. Negative, or above `delta_up`, it
    re-samples half-way between the last two points (neighbours have nothing between them) and keeps the step; a
    fall within the stop band is noise and changes nothing.
    Else the next step is `min_step * delta_up / growth`, at most `max_step`.
    """

    min_step: int = 1
    max_step: int = 3
    delta_stop: float = 0.01
    delta_up: float = 0.5
    max_stop_count: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.min_step <= self.max_step:
            raise BadInputError(f"steps must be 1 <= min_step <= max_step, got {self.min_step} and {self.max_step}")
        if not 0 < self.delta_stop < self.delta_up:
            raise BadInputError(
                f"thresholds must be 0 < delta_stop < delta_up, got {self.delta_stop} and {self.delta_up}"
            )
        _check_stops(self.max_stop_count)

    def sample(
        self, target: SamplingTarget, sizes: Sequence[InstanceSize], convergence: ConvergenceRule | None = None
    ) -> tuple[Sample, ...]:
        """Measure along `sizes`, smallest first; samples come back in that order."""
        samples = _SamplingPass(target, sizes, convergence or ConvergenceRule())
        last, step, stops = 0, self.min_step, 0
        samples.sample(last)
        while stops < self.max_stop_count and last < len(sizes) - 1:
            position = min(last + step, len(sizes) - 1)
            growth = _growth(samples.sample(last), samples.sample(position), position - last) * self.min_step
            is_flat = abs(growth) < self.delta_stop
            stops = stops + 1 if is_flat else 0
            if growth > self.delta_up or (growth < 0 and not is_flat):
                samples.sample((last + position) // 2)
            else:
                step = self._next_step(growth)
            last = position
        return samples.ordered()

    def _next_step(self, growth: float) -> int:
        if growth * self.max_step <= self.min_step * self.delta_up:
            return self.max_step
        return max(self.min_step, round(self.min_step * self.delta_up / growth))


@dataclass(frozen=True, kw_only=True)
class FixedStepSampling:
    """FSSA, the baseline: the same with steps that are all alike."""

    step: int = 2
    delta_stop: float = 0.01
    max_stop_count: int = 2

    def __post_init__(self) -> None:
        if self.step < 1:
            raise BadInputError(f"step must be at least 1, got {self.step}")
        if not self.delta_stop > 0:
            raise BadInputError(f"delta_stop must be above 0, got {self.delta_stop}")
        _check_stops(self.max_stop_count)

    def sample(
        self, target: SamplingTarget, sizes: Sequence[InstanceSize], convergence: ConvergenceRule | None = None
    ) -> tuple[Sample, ...]:
        """Measure along `sizes`, smallest first."""
        samples = _SamplingPass(target, sizes, convergence or ConvergenceRule())
        stops = 0
        samples.sample(0)
        for last, position in itertools.pairwise(range(0, len(sizes), self.step)):
            growth = _growth(samples.sample(last), samples.sample(position), self.step)
            stops = stops + 1 if abs(growth) < self.delta_stop else 0
            if stops >= self.max_stop_count:
                break
        return samples.ordered()


def _growth(before: float, after: float, steps: int) -> float:
    """Relative change per step; from nothing to something counts as a doubling."""
    if before <= 0:
        return 1.0 if after > 0 else 0.0
    return (after - before) / steps / before


def _closable(rates: Iterator[float]) -> Generator[float, None, None]:
    """A generator around any iterator, so that closing it closes a generator inside and spares a plain iterator."""
    yield from rates


def _check_stops(max_stop_count: int) -> None:
    if max_stop_count < 1:
        raise BadInputError(f"max_stop_count must be at least 1, got {max_stop_count}")
