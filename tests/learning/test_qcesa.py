"""QCESA against every plan there is, and the stories the paper tells about it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import BadInputError
from sluice.learning.qcesa import (
    ScalingCosts,
    SizeOption,
    most_capacity,
    plan_horizon,
    plan_one_size,
    plan_within,
    total_cost,
)

SMALL = SizeOption(name="small", performance=4, price=1.0)
LARGE = SizeOption(name="large", performance=9, price=1.9)


def cheapest_of_all(loads, options, costs, running, max_instances):
    """The cost of every sequence of mixes, as one tensor with an axis per epoch: no cleverness to get wrong."""
    bounds = [max(math.ceil(max(loads) / option.performance), running.get(option.name, 0), 1) + 1 for option in options]
    mixes = np.array(list(itertools.product(*(range(bound + 1) for bound in bounds))))
    mixes = mixes[mixes.sum(axis=1) >= 1]
    if max_instances is not None:
        mixes = mixes[mixes.sum(axis=1) <= max_instances]
    most = [math.inf if option.most is None else option.most for option in options]
    mixes = mixes[(mixes <= most).all(axis=1)]
    capacity = mixes @ np.array([option.performance for option in options])
    price = mixes @ np.array([option.price for option in options])

    def change(before, after):
        step = after - before
        return costs.startup * np.maximum(step, 0).sum(-1) + costs.shutdown * np.maximum(-step, 0).sum(-1)

    start = np.array([running.get(option.name, 0) for option in options])
    tensor = np.where(capacity >= loads[0], price + change(start, mixes), np.inf)
    between = change(mixes[:, None, :], mixes[None, :, :])
    for load in loads[1:]:
        own = np.where(capacity >= load, price, np.inf)
        tensor = tensor[..., :, None] + between + own
    return float(tensor.min())


@st.composite
def small_cases(draw):
    sizes = draw(st.integers(1, 3))
    running = {f"s{index}": draw(st.integers(0, 2)) for index in range(sizes)}
    epochs = draw(st.integers(1, 4 if sizes < 3 else 3))
    options = [
        SizeOption(
            name=f"s{index}",
            performance=draw(st.sampled_from([2, 3, 4, 5, 7])),
            price=draw(st.sampled_from([0.0, 0.5, 1.0, 1.25, 1.5, 2.0, 3.0])),
            most=draw(st.none() | st.integers(max(1, running[f"s{index}"]), 3)),
        )
        for index in range(sizes)
    ]
    cost = st.sampled_from([0.0, 0.3, 1.0, 4.0])
    max_instances = draw(st.sampled_from([None, 4, 5]))
    highest = min(7, most_capacity(options, max_instances))
    loads = draw(st.lists(st.integers(0, int(highest)), min_size=epochs, max_size=epochs))
    return loads, options, ScalingCosts(startup=draw(cost), shutdown=draw(cost)), running, max_instances


@settings(max_examples=500)
@given(small_cases())
def test_equals_the_cheapest_of_all_plans(case):
    loads, options, costs, running, max_instances = case
    plan = plan_horizon(loads, options, costs, running=running, max_instances=max_instances)
    assert plan.cost == pytest.approx(cheapest_of_all(loads, options, costs, running, max_instances))
    assert plan.cost == pytest.approx(total_cost(plan.mixes, options, costs, running))
    performance = {option.name: option.performance for option in options}
    for load, mix in zip(loads, plan.mixes, strict=True):
        assert sum(count * performance[name] for name, count in mix.items()) >= load
        assert 1 <= sum(mix.values()) <= (max_instances or math.inf)


@settings(max_examples=50)
@given(small_cases())
def test_more_sizes_never_cost_more_than_one(case):
    loads, options, costs, _, _ = case
    best = plan_horizon(loads, options, costs).cost
    for option in (one for one in options if most_capacity([one], None) >= max(loads)):
        assert best <= plan_one_size(loads, option, costs).cost + 1e-9


def test_keeps_an_instance_through_a_dip_if_restarting_costs_more():
    loads = [8, 4, 8]
    dear = plan_horizon(loads, [SMALL], ScalingCosts(startup=1.5))
    cheap = plan_horizon(loads, [SMALL], ScalingCosts(startup=0.5))
    assert [mix["small"] for mix in dear.mixes] == [2, 2, 2]
    assert [mix["small"] for mix in cheap.mixes] == [2, 1, 2]


def test_a_short_peak_adds_a_large_instance_beside_the_small_one():
    """The large one alone would carry the peak, but swapping twice costs more than running both."""
    plan = plan_horizon([4] * 10 + [9] + [4] * 10, [SMALL, LARGE], ScalingCosts(startup=1.1))
    assert plan.mixes[10] == {"small": 1, "large": 1}
    assert set(map(str, plan.mixes[:10] + plan.mixes[11:])) == {str({"small": 1})}


def test_keeps_a_running_instance_it_does_not_need_if_stopping_costs_more_than_running():
    keep = plan_horizon([4, 4], [SMALL], ScalingCosts(shutdown=3), running={"small": 2})
    stop = plan_horizon([4, 4], [SMALL], ScalingCosts(shutdown=1), running={"small": 2})
    assert [mix["small"] for mix in keep.mixes] == [2, 2]
    assert [mix["small"] for mix in stop.mixes] == [1, 1]


def test_a_dominated_size_is_never_started_but_may_run_on():
    slow = SizeOption(name="slow", performance=4, price=1.2)
    fresh = plan_horizon([4, 8], [slow, SMALL], ScalingCosts(startup=1))
    assert all("slow" not in mix for mix in fresh.mixes)
    held = plan_horizon([4, 8], [slow, SMALL], ScalingCosts(startup=1, shutdown=1), running={"slow": 1})
    assert held.mixes == ({"slow": 1}, {"slow": 1, "small": 1})


def test_of_a_size_that_runs_out_the_rest_is_made_up_with_others():
    few = SizeOption(name="large", performance=9, price=1.9, most=1)
    assert plan_horizon([20], [SMALL, few], ScalingCosts()).mixes == ({"small": 3, "large": 1},)


def test_a_dominated_size_is_started_where_the_better_one_runs_out():
    few = SizeOption(name="better", performance=4, price=0.5, most=1)
    assert plan_horizon([8], [few, SMALL], ScalingCosts()).mixes == ({"better": 1, "small": 1},)


def test_a_load_beyond_all_that_can_be_had_gets_all_of_it():
    few = [
        SizeOption(name="small", performance=4, price=1, most=2),
        SizeOption(name="large", performance=9, price=2, most=1),
    ]
    plan = plan_within([100], few, ScalingCosts(), {}, max_instances=24, max_mixes=1000)
    assert plan.mixes == ({"small": 2, "large": 1},)


def test_a_load_on_the_edge_of_capacity_is_carried():
    thirds = SizeOption(name="thirds", performance=0.1, price=1)
    assert plan_horizon([0.3], [thirds], ScalingCosts()).mixes == ({"thirds": 3},)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"loads": []}, "at least one epoch"),
        ({"loads": [float("nan")]}, "got nan"),
        ({"loads": [-1.0]}, "got -1.0"),
        ({"loads": [100.0], "max_instances": 3}, "at most 3 instances carries a load of 100; the most is 27"),
        ({"loads": [1.0], "options": []}, "at least one instance size"),
        ({"loads": [1.0], "options": [SMALL, SMALL]}, "different names"),
        ({"loads": [1.0], "running": {"huge": 1}}, "'huge'"),
        ({"loads": [1.0], "max_instances": 0}, "got 0"),
        ({"loads": [900.0], "max_mixes": 1000}, "more than 1000 mixes"),
    ],
)
def test_refuses_what_it_cannot_plan(arguments, words):
    given_ = {"options": [SMALL, LARGE], "costs": ScalingCosts()} | arguments
    with pytest.raises(BadInputError, match=words):
        plan_horizon(given_.pop("loads"), given_.pop("options"), given_.pop("costs"), **given_)


@pytest.mark.parametrize(
    "build", [lambda: SizeOption(name="x", performance=0, price=1), lambda: ScalingCosts(startup=-1)]
)
def test_refuses_impossible_numbers(build):
    with pytest.raises(BadInputError, match="got"):
        build()


def test_a_dip_that_costs_the_same_either_way_is_ridden_out_without_changes():
    """Riding out the dip costs one epoch of two instances; stopping and starting them costs the same."""
    only = SizeOption(name="only", performance=1, price=1.0)
    plan = plan_horizon([3, 1, 3], [only], ScalingCosts(startup=0.75, shutdown=0.25), running={"only": 3})
    assert plan.mixes == ({"only": 3},) * 3
    assert plan.cost == 9
