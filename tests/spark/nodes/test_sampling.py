"""A size measured on the live load: one more node, which leaves afterwards, whatever happens to it."""

from __future__ import annotations

import itertools

import pytest

from sluice.errors import SluiceError
from sluice.spark.nodes.sampling import LiveSampling
from tests.spark.nodes.fakes import LARGE


def test_a_size_is_sampled_beside_the_others_and_its_node_leaves_afterwards(world):
    world.started()
    sampling = LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=1.0)
    rates = sampling.rates(LARGE.size)
    assert [next(rates) for _ in range(3)] == [2000.0] * 3
    assert world.tasks("map") == {"small": 1, "large": 2}
    assert world.engine.reconcile(world.target).observed == {"map": 1, "count": 1}, "it is no instance of the target"
    rates.close()
    assert world.tasks("map") == {"small": 1}
    assert set(world.provider.nodes) == {"small-1", "small-2"}


def test_a_sampled_node_gets_more_until_its_tasks_take_most_of_a_trigger(world):
    world.started()
    rates = LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=10.0).rates(LARGE.size)
    for _ in range(4):
        next(rates)
    assert world.engine.emphasis["large-3"] > 4
    rates.close()
    assert world.engine.emphasis == {}


def test_a_sampled_node_whose_tasks_are_too_long_keeps_its_share(world):
    """Tasks that keep state cost something without a record: fewer records would not make them short."""
    world.started()
    rates = LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=0.1).rates(LARGE.size)
    for _ in range(4):
        next(rates)
    assert world.engine.emphasis["large-3"] == 1.0


def sampling(world, **options):
    return LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=1.0, **options)


def test_a_size_that_cannot_be_started_is_not_sampled_and_the_job_goes_on(world):
    world.started()
    world.provider.full = {"large"}
    with pytest.raises(SluiceError, match=r"no node of type 'large' to sample: .* no room for a 'large'"):
        next(sampling(world).rates(LARGE.size))
    assert world.engine.extra == {}
    done, _ = world.passing(3)
    assert done.observed == {"map": 1, "count": 1}


def test_a_sampled_node_that_never_comes_is_an_error(world):
    world.started()
    world.inner.worker_side.dead = {f"10.0.0.{number}" for number in range(3, 10)}
    with pytest.raises(SluiceError, match=r"no node of type 'large' to sample: .* did not come within 61 s"):
        next(sampling(world).rates(LARGE.size))


def test_without_load_nothing_is_sampled(world):
    world.started()
    world.inner.worker_side.speeds.add = lambda *_: None
    with pytest.raises(SluiceError, match=r"node 'large-3' read nothing of 'map' in 12 windows: is there any load\?"):
        next(sampling(world).rates(LARGE.size))
    assert world.engine.extra == {}


def test_too_little_load_to_saturate_a_node_is_said(world):
    world.started()
    said = []
    rates = LiveSampling(world.engine, "map", world.target, window_s=2.0, trigger_s=100.0, say=said.append).rates(
        LARGE.size
    )
    next(rates)
    rates.close()
    assert said == [
        "map on large: tasks took 1.00 s, 80 s were aimed at: too little load to saturate it, its rate may be too low"
    ]


def test_a_node_that_dies_while_it_is_sampled_is_an_error(world):
    world.started()
    rates = sampling(world).rates(LARGE.size)
    next(rates)
    del world.provider.nodes["large-3"]
    with pytest.raises(SluiceError, match="node 'large-3' was lost while it was sampled"):
        list(itertools.islice(rates, 5))


@pytest.mark.parametrize("windows", [0, 2])
def test_an_interrupted_pass_ends_at_once(world, windows):
    world.started()
    rates = sampling(world).rates(LARGE.size)
    for _ in range(windows):
        next(rates)
    world.inner.clock.interrupted.set()
    before_s = world.inner.clock.time_s
    with pytest.raises(SluiceError, match="interrupted"):
        next(rates)
    assert world.inner.clock.time_s - before_s <= world.engine.tick_s
    assert (world.engine.extra, world.engine.emphasis) == ({}, {})
