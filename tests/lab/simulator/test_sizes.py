"""Instances of different sizes on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from sluice.lab.simulator import Linear, SimulatedEngine, SimulatedJob, SimulatedOperator, SimulatorSettings
from sluice.model import Target


def engine(speedup=None, start_s=0.0):
    job = SimulatedJob(
        operators=(SimulatedOperator(name="op", capacity=Linear(100), speedup=speedup),),
        edges=(),
        settings=SimulatorSettings(instance_start_s=start_s),
    )
    return SimulatedEngine(job, {"op": lambda times_s: np.full(len(times_s), 5000.0)})


def rate(running, seconds=20):
    running.clock.sleep_s(seconds)
    return running.observe().operators["op"].input_rate


def plan(**mix):
    return Target(parallelism={"op": sum(mix.values())}, sizes={"op": mix})


@pytest.mark.parametrize(
    ("mix", "speedup", "expected"),
    [
        ({"micro": 2}, None, 200),
        ({"xlarge": 1, "nano": 1}, None, 450),
        ({"xlarge": 1}, lambda size: size.cpu_cores**0.5, 200),
    ],
)
def test_a_mix_is_as_fast_as_its_instances(mix, speedup, expected):
    running = engine(speedup)
    running.start(plan(**mix))
    assert rate(running) == pytest.approx(expected)


def test_the_observation_tells_the_sizes():
    running = engine()
    running.start(plan(nano=1, large=2))
    running.clock.sleep_s(1)
    assert running.observe().operators["op"].sizes == {"nano": 1, "large": 2}


def test_a_swapped_size_needs_its_time_to_start_and_the_old_one_works_on():
    running = engine(start_s=30.0)
    running.start(plan(micro=1))
    running.reconcile(plan(xlarge=1))
    assert rate(running) == pytest.approx(100)
    running.clock.sleep_s(10)
    running.observe()
    assert rate(running) == pytest.approx(400)
