"""Load patterns, each a share of the pipeline's peak rate per minute; most are those of the thesis (5.4.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sluice.lab.workloads.base import MOST_MINUTES, Floats, require, require_load, workload
from sluice.registry import parameter


class _Pattern:
    """A workload whose loads are shares of the peak rate."""

    absolute = False

    def _require_minutes(self, least: int, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            require(
                least <= value <= MOST_MINUTES, f"{name} must be between {least} and {MOST_MINUTES:,}, got {value:,}"
            )

    def _require_loads(self, *names: str) -> None:
        for name in names:
            require_load(name, getattr(self, name))


@workload("constant")
@dataclass(frozen=True, kw_only=True)
class Constant(_Pattern):
    """One load that never changes."""

    minutes: int = parameter(60, "length")
    load: float = parameter(1.0, "the load")

    def __post_init__(self) -> None:
        self._require_minutes(1, "minutes")
        self._require_loads("load")

    def loads(self, random: np.random.Generator) -> Floats:
        return np.full(self.minutes, self.load)


@workload("square")
@dataclass(frozen=True, kw_only=True)
class Square(_Pattern):
    """High, low, high, low: a step every so many minutes."""

    phase_minutes: int = parameter(200, "length of one phase")
    phases: int = parameter(5, "how many phases")
    high: float = parameter(1.0, "load of the first phase")
    low: float = parameter(0.5, "load of the second")

    def __post_init__(self) -> None:
        self._require_minutes(1, "phase_minutes")
        require(1 <= self.phases <= 10_000, f"phases must be between 1 and 10,000, got {self.phases}")
        self._require_loads("high", "low")

    def loads(self, random: np.random.Generator) -> Floats:
        """As in Dragster, section 6."""
        phases = [self.high if phase % 2 == 0 else self.low for phase in range(self.phases)]
        return np.repeat(phases, self.phase_minutes)


@workload("convergence")
@dataclass(frozen=True, kw_only=True)
class ConvergenceSteps(_Pattern):
    """Nothing, then a high load, then a part of it: how long does a policy take to settle?"""

    quiet_minutes: int = parameter(10, "without any load")
    high_minutes: int = parameter(40, "at the high load")
    low_minutes: int = parameter(40, "at the lower load")
    high: float = parameter(2000 / 2200, "the high load")
    low: float = parameter(1000 / 2200, "the lower load")

    def __post_init__(self) -> None:
        self._require_minutes(0, "quiet_minutes", "high_minutes", "low_minutes")
        self._require_loads("high", "low")
        require(self.quiet_minutes + self.high_minutes + self.low_minutes > 0, "a workload needs at least one minute")

    def loads(self, random: np.random.Generator) -> Floats:
        return np.repeat([0.0, self.high, self.low], [self.quiet_minutes, self.high_minutes, self.low_minutes])


@workload("permutation")
@dataclass(frozen=True, kw_only=True)
class Permutation(_Pattern):
    """The levels 1..n in an order the seed chooses, the whole sequence several times over."""

    levels: int = parameter(10, "number of load levels; level k has the load k/levels")
    rounds: int = parameter(2, "how often the sequence is run")
    level_minutes: int = parameter(10, "how long a level lasts")

    def __post_init__(self) -> None:
        for name in ("levels", "rounds"):
            value = getattr(self, name)
            require(1 <= value <= 1000, f"{name} must be between 1 and 1000, got {value}")
        self._require_minutes(1, "level_minutes")

    def loads(self, random: np.random.Generator) -> Floats:
        """As in ContTune, section 6."""
        order = random.permutation(np.arange(1, self.levels + 1)) / self.levels
        return np.repeat(np.tile(order, self.rounds), self.level_minutes)


@workload("cosine")
@dataclass(frozen=True, kw_only=True)
class Cosine(_Pattern):
    """A cosine that starts at its peak, with noise on every minute."""

    minutes: int = parameter(140, "length")
    period_minutes: float = parameter(60.0, "from peak to peak")
    low: float = parameter(200 / 2200, "load at the bottom")
    noise: float = parameter(100 / 2200, "largest deviation of a minute")

    def __post_init__(self) -> None:
        self._require_minutes(1, "minutes")
        require(self.period_minutes > 0, f"period_minutes must be above 0, got {self.period_minutes}")
        require(0 <= self.low <= 1, f"low must be in [0, 1], got {self.low}")
        self._require_loads("noise")

    def loads(self, random: np.random.Generator) -> Floats:
        minute = np.arange(self.minutes)
        swing = np.cos(2 * np.pi * minute / self.period_minutes)
        smooth = (1 + self.low) / 2 + (1 - self.low) / 2 * swing
        noisy: Floats = smooth + random.uniform(-self.noise, self.noise, self.minutes)
        return np.maximum(0.0, noisy)


@workload("random")
@dataclass(frozen=True, kw_only=True)
class RandomWalk(_Pattern):
    """A random walk: every minute adds or takes away something."""

    minutes: int = parameter(140, "length")
    start: float = parameter(1250 / 2200, "load of the first minute")
    max_change: float = parameter(500 / 2200, "largest change from one minute to the next")
    peak: float = parameter(2500 / 2200, "load it never exceeds")

    def __post_init__(self) -> None:
        self._require_minutes(1, "minutes")
        self._require_loads("peak", "max_change")
        require(0 <= self.start <= self.peak, f"start must be between 0 and peak ({self.peak}), got {self.start}")

    def loads(self, random: np.random.Generator) -> Floats:
        changes = random.uniform(-self.max_change, self.max_change, self.minutes - 1)
        loads = np.empty(self.minutes)
        loads[0] = self.start
        for minute, change in enumerate(changes, start=1):
            loads[minute] = np.clip(loads[minute - 1] + change, 0.0, self.peak)
        return loads


@workload("spikes")
@dataclass(frozen=True, kw_only=True)
class Spikes(_Pattern):
    """A base load with short peaks at random times."""

    minutes: int = parameter(140, "length")
    base: float = parameter(0.3, "load between spikes")
    peak: float = parameter(1.0, "load in a spike")
    spike_minutes: int = parameter(4, "length of a spike")
    mean_gap_minutes: float = parameter(20.0, "mean time between two spikes")

    def __post_init__(self) -> None:
        self._require_minutes(1, "minutes", "spike_minutes")
        require(self.mean_gap_minutes > 0, f"mean_gap_minutes must be above 0, got {self.mean_gap_minutes}")
        self._require_loads("peak")
        require(0 <= self.base <= self.peak, f"base must be between 0 and peak ({self.peak}), got {self.base}")

    def loads(self, random: np.random.Generator) -> Floats:
        loads = np.full(self.minutes, self.base)
        start = random.exponential(self.mean_gap_minutes)
        while start < self.minutes:
            first = int(start)
            loads[first : first + self.spike_minutes] = self.peak
            start += self.spike_minutes + random.exponential(self.mean_gap_minutes)
        return loads


class _Ramp(_Pattern):
    minutes: int
    peak: float

    def __post_init__(self) -> None:
        self._require_minutes(2, "minutes")
        require(self.peak > 0, f"peak must be above 0, got {self.peak}")
        self._require_loads("peak")

    def _climb(self, random: np.random.Generator) -> Floats:
        """From 0 to the peak in random steps."""
        steps = np.concatenate([[0.0], random.uniform(0.0, 1.0, self.minutes - 1)])
        climbed: Floats = self.peak * np.cumsum(steps) / steps.sum()
        return climbed


@workload("increasing")
@dataclass(frozen=True, kw_only=True)
class Increasing(_Ramp):
    """From nothing to the peak, in random steps."""

    minutes: int = parameter(140, "length")
    peak: float = parameter(2500 / 2200, "load at the end")

    def loads(self, random: np.random.Generator) -> Floats:
        return self._climb(random)


@workload("decreasing")
@dataclass(frozen=True, kw_only=True)
class Decreasing(_Ramp):
    """From the peak to nothing, in random steps."""

    minutes: int = parameter(140, "length")
    peak: float = parameter(2500 / 2200, "load at the start")

    def loads(self, random: np.random.Generator) -> Floats:
        return self._climb(random)[::-1].copy()
