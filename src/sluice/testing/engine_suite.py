"""What the loop may rely on, whatever the engine: one suite, every engine.

An engine joins by adding a function that builds it, paced so that an instance of `work` does about RATE records/s.
"""

import numpy as np
import pytest

from sluice.control.engine import Engine
from sluice.lab.simulator import Linear, SimulatedEngine, SimulatedJob, SimulatedOperator, chain
from sluice.model import Target

RATE = 100.0


def simulator() -> Engine:
    job = SimulatedJob(
        operators=(
            SimulatedOperator(name="source", capacity=Linear(10 * RATE)),
            SimulatedOperator(name="work", capacity=Linear(RATE), state_bytes_per_record=10),
        ),
        edges=chain("source", "work"),
    )
    return SimulatedEngine(job, {"source": lambda times_s: np.full_like(times_s, 1.5 * RATE)})


ENGINES = {"simulator": simulator}
INITIAL = Target(parallelism={"source": 1, "work": 1})


@pytest.fixture(params=sorted(ENGINES))
def engine(request):
    engine = ENGINES[request.param]()
    engine.start(INITIAL)
    yield engine
    engine.stop()


def test_time_starts_at_zero_and_passes_while_sleeping(engine):
    assert engine.clock.now_s() == 0
    engine.clock.sleep_s(10)
    assert engine.clock.now_s() == 10


def test_a_window_covers_the_time_since_the_last_one(engine):
    engine.clock.sleep_s(10)
    engine.observe()
    engine.clock.sleep_s(5)
    seen = engine.observe()
    assert (seen.time_s, seen.interval_s) == (15, 5)


def test_an_observation_names_the_operators_and_edges_of_the_graph(engine):
    engine.clock.sleep_s(10)
    seen = engine.observe()
    assert set(seen.operators) == set(engine.graph.names)
    assert set(seen.edges) == {edge.ends for edge in engine.graph.edges}
    assert seen.parallelism == INITIAL.parallelism
    assert len(seen.latency_samples_s) > 0


def test_applying_changes_what_differs_and_says_so(engine):
    engine.clock.sleep_s(10)
    engine.observe()
    applied = engine.apply(Target(parallelism={"source": 1, "work": 3}))
    assert applied.error is None
    assert applied.changed == {"work": (1, 3)}
    engine.clock.sleep_s(10)
    assert engine.observe().parallelism == {"source": 1, "work": 3}


def test_more_instances_do_more(engine):
    engine.clock.sleep_s(20)
    engine.observe()
    engine.clock.sleep_s(20)
    before = engine.observe().operators["work"].input_rate
    engine.apply(Target(parallelism={"source": 1, "work": 3}))
    engine.clock.sleep_s(20)
    assert engine.observe().operators["work"].input_rate > 1.2 * before


def test_the_same_plan_changes_nothing(engine):
    engine.clock.sleep_s(10)
    engine.observe()
    applied = engine.apply(INITIAL)
    assert applied.changed == {}
    assert applied.downtime_s == 0


def test_stopping_counts_every_record_and_may_be_called_twice(engine):
    engine.clock.sleep_s(20)
    engine.apply(Target(parallelism={"source": 2, "work": 2}))
    engine.clock.sleep_s(20)
    counted = engine.stop()
    assert counted.arrived == counted.processed + counted.waiting
    assert counted.lost == counted.duplicated == 0
    assert engine.stop() == counted
