"""Interpreted and compiled ticks are the same ticks."""

import subprocess
import sys

import numpy as np
import pytest

from sluice.lab.pipelines import pipelines
from sluice.lab.simulator import Linear, SimulatedEngine, SimulatedJob, SimulatedOperator, SimulatorSettings, chain
from sluice.lab.simulator.ticking import Ticker
from sluice.model import Cluster, Target


def forgetful():
    """Topics that delete what is too old: the job is far too slow for its load."""
    return SimulatedJob(
        operators=(
            SimulatedOperator(name="source", capacity=Linear(500.0), selectivity=0.7),
            SimulatedOperator(name="sink", capacity=Linear(300.0)),
        ),
        edges=chain("source", "sink"),
        settings=SimulatorSettings(retention_s=60.0, segment_s=10.0),
    )


def simulated(job, steps_left, monkeypatch):
    monkeypatch.setattr(Ticker, "steps_left", steps_left)
    arrivals = dict.fromkeys(job.graph.topology.sources, lambda times_s: 2000.0 + 1500.0 * np.sin(times_s / 50))
    engine = SimulatedEngine(job, arrivals, seed=3)
    engine.start(Target(parallelism=dict.fromkeys(job.graph.names, 1)))
    observations = []
    for _ in range(40):
        engine.run_ticks(15)
        observations.append(engine.observe())
    return observations, [values.tolist() for values in engine.state], engine.stop()


@pytest.mark.parametrize("name", ["q1", "q3", "q5", "q11", "yahoo", "forgetful"])
def test_both_ways_give_the_same_numbers_to_the_last_bit(name, monkeypatch):
    job = forgetful() if name == "forgetful" else pipelines.create(name).simulated()
    interpreted = simulated(job, 10**9, monkeypatch)
    assert interpreted == simulated(job, 0, monkeypatch)
    assert interpreted == simulated(job, 5_000, monkeypatch)


def test_workers_are_shared_by_compiled_code_from_the_first_tick_on(monkeypatch):
    job = SimulatedJob(
        operators=(SimulatedOperator(name="source", capacity=Linear(500.0)),),
        edges=(),
        settings=SimulatorSettings(cluster=Cluster.uniform(1, 2, cpu=0.5)),
    )
    assert simulated(job, 10**9, monkeypatch) == simulated(job, 0, monkeypatch)


def test_a_run_known_to_be_long_is_compiled_from_its_first_tick(monkeypatch):
    job = pipelines.create("q1").simulated()
    engine = SimulatedEngine(job, dict.fromkeys(job.graph.topology.sources, np.zeros_like))
    operators = len(job.graph.names)
    monkeypatch.setattr(Ticker, "steps_left", 100 * operators)
    engine.expect(100.0)
    assert Ticker.steps_left == 100 * operators
    engine.expect(101.0)
    assert Ticker.steps_left == 0


def test_a_run_of_some_hours_imports_no_numba():
    code = """
import sys
from sluice.cli import main
try:
    main("run q11 --duration 7200 --json".split())
finally:
    heavy = {"numba", "scipy", "plotly", "ortools", "sklearn", "pyspark", "pandas", "pyarrow"} & sys.modules.keys()
    assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
