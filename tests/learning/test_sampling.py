"""Sampling against instances whose rates are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sluice.errors import BadInputError
from sluice.learning.instance_sizes import ResourceCurve
from sluice.learning.sampling import ConvergenceRule, DynamicSampling, FixedStepSampling, growing_sizes
from sluice.model import InstanceSize

ONE_CORE = InstanceSize(name="one", cpu_cores=1, memory_mb=1024)


class Instances:
    """A target that follows a curve of cores exactly, and remembers the sizes that were sampled."""

    def __init__(self, curve):
        self.curve = curve
        self.sampled = []
        self.running = 0

    def rates(self, size):
        self.sampled.append(size.cpu_cores)
        self.running += 1
        try:
            while True:
                yield self.curve(size.cpu_cores)
        finally:
            self.running -= 1


def sizes(count=30):
    return growing_sizes(count=count, first_cores=1, step_cores=1, memory_mb=1024)


@pytest.mark.parametrize(
    ("story", "rates", "converged", "windows"),
    [
        ("steady from the start", [100.0] * 50, True, 6),
        ("warms up, then steady", [*range(10, 100, 10), *[100.0] * 50], True, 15),
        ("grows by a tenth each window", [1.1**k for k in range(50)], False, 20),
        ("noise around a level", [100 + (-1) ** k for k in range(50)], True, 6),
        ("ends too early to tell", [100.0, 100.0], False, 2),
        ("jumps after it seemed steady", [*[100.0] * 5, *[150.0] * 50], True, 11),
    ],
)
def test_convergence_compares_the_last_windows_with_those_before(story, rates, converged, windows):
    sample = ConvergenceRule(windows=3, tolerance=0.02, max_windows=20).measure(ONE_CORE, rates)
    assert (sample.converged, sample.windows) == (converged, windows), story
    assert sample.rate == pytest.approx(np.mean(rates[max(0, windows - 3) : windows]))


def test_a_dead_instance_converges_to_zero():
    assert ConvergenceRule(windows=2).measure(ONE_CORE, itertools.repeat(0.0)).rate == 0


def test_an_instance_without_any_window_is_an_error():
    with pytest.raises(BadInputError, match="no window"):
        ConvergenceRule().measure(ONE_CORE, [])


def test_fixed_steps_go_on_until_larger_is_no_longer_faster():
    target = Instances(lambda cores: min(cores, 9.0))
    samples = FixedStepSampling(step=3, max_stop_count=2).sample(target, sizes())
    assert [sample.size.cpu_cores for sample in samples] == [1, 4, 7, 10, 13, 16]
    assert [sample.rate for sample in samples] == [1, 4, 7, 9, 9, 9]


def test_dynamic_steps_are_small_where_the_rate_grows_and_large_where_it_does_not():
    target = Instances(lambda cores: min(cores, 9.0))
    DynamicSampling(max_step=6, delta_up=0.4, max_stop_count=2).sample(target, sizes())
    # growth 1, 0.5: too steep to stride; 1/3 -> step 1; 1/4 -> 2; 1/5 -> 2; 1/7 -> 3; flat -> 6, twice
    assert target.sampled == [1, 2, 3, 4, 5, 7, 9, 12, 18]


def test_a_jump_is_sampled_again_half_way():
    target = Instances(lambda cores: 10.0 if cores < 16 else 100.0)
    DynamicSampling(max_step=4, max_stop_count=6).sample(target, sizes())
    jump = target.sampled.index(18)
    assert target.sampled[jump - 1 : jump + 2] == [14, 18, 16]


def test_a_fall_is_sampled_again_half_way():
    target = Instances(lambda cores: 100.0 if cores < 16 else 50.0)
    DynamicSampling(max_step=4, max_stop_count=6).sample(target, sizes())
    fall = target.sampled.index(18)
    assert target.sampled[fall + 1] == 16


@pytest.mark.parametrize("sampler", [DynamicSampling(), FixedStepSampling(step=4)])
def test_ends_at_the_largest_size_and_leaves_no_instance_behind(sampler):
    target = Instances(lambda cores: cores**2)
    samples = sampler.sample(target, sizes(count=9))
    assert target.running == 0
    assert samples[-1].size.cpu_cores == 9
    assert [sample.size.cpu_cores for sample in samples] == sorted(set(target.sampled))


def test_one_size_is_one_sample():
    assert len(DynamicSampling().sample(Instances(lambda cores: cores), sizes(count=1))) == 1


@pytest.mark.parametrize(
    "build",
    [
        lambda: ConvergenceRule(windows=0),
        lambda: ConvergenceRule(tolerance=0),
        lambda: ConvergenceRule(windows=10, max_windows=15),
        lambda: DynamicSampling(min_step=3, max_step=2),
        lambda: DynamicSampling(delta_stop=0.6),
        lambda: DynamicSampling(max_stop_count=0),
        lambda: FixedStepSampling(step=0),
        lambda: ResourceCurve(rate_per_core=0, threads=1),
        lambda: ResourceCurve(rate_per_core=1, threads=1, contention=-1),
    ],
)
def test_impossible_settings_are_refused(build):
    with pytest.raises(BadInputError, match="got"):
        build()


@pytest.mark.parametrize(
    ("cores", "memory_mb", "rate"),
    [
        (0.5, 1000, 50),
        (2, 1000, 200),
        (9, 1000, 400),
        (1, 600, 100 / 2),
        (1, 200, 100 / 3),
        (1, 100, 100 / 3),
    ],
)
def test_a_curve_counts_cores_up_to_the_threads_and_memory_up_to_the_working_set(cores, memory_mb, rate):
    curve = ResourceCurve(rate_per_core=100, threads=4, overhead_mb=200, working_set_mb=800, miss_penalty=2)
    assert curve(InstanceSize(name="x", cpu_cores=cores, memory_mb=memory_mb)) == pytest.approx(rate)


def test_contention_makes_the_second_core_worth_less():
    curve = ResourceCurve(rate_per_core=100, threads=8, contention=0.1, coherence=0.01)
    rates = [curve(InstanceSize(name="x", cpu_cores=cores, memory_mb=1)) for cores in (1, 2, 3, 4)]
    assert np.all(np.diff(rates) > 0)
    assert np.all(np.diff(rates, 2) < 0)
