"""Which plan is cheapest, in situations where one can tell by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice.dataflow.flow_plan import Option, Terms, cheapest_plan

TERMS = Terms(
    step_s=30.0,
    downtime_s=45.0,
    start_s=0.0,
    cooldown_s=300.0,
    objective_s=30.0,
    late_price=50.0,
    action_price=100.0,
    slots_per_rate=0.1,
)
SMALL, MIDDLE, LARGE = Option(5, 50.0), Option(10, 100.0), Option(20, 200.0)


def plan(load, present, options=(SMALL, MIDDLE, LARGE), lag=0.0, terms=TERMS, steps=20):
    path = load if isinstance(load, list) else [load] * steps
    return cheapest_plan([path], lag, present, options, [0, 1, 5, 10], terms)


def test_what_fits_stays():
    best, never = plan(90.0, MIDDLE)
    assert best.option is None
    assert never.late_s == 0


def test_too_small_grows_now():
    best, never = plan(150.0, MIDDLE)
    assert (best.option, best.wait_steps) == (2, 0)
    assert best.late_s < never.late_s


def test_a_surplus_is_given_back_where_that_is_worth_a_restart():
    assert plan(40.0, LARGE)[0].option in (0, 1)
    assert plan(40.0, LARGE, terms=replace(TERMS, action_price=1e5))[0].option is None


def test_free_actions_are_taken_for_any_surplus():
    free = replace(TERMS, downtime_s=0.0, cooldown_s=0.0, action_price=0.0)
    assert plan(40.0, LARGE, terms=free, steps=2)[0].option == 0


def test_a_rise_that_is_far_off_is_waited_for():
    best, _ = plan([80.0] * 15 + [180.0] * 15, MIDDLE)
    assert best.wait_steps > 0


def test_a_backlog_is_worked_off_though_the_load_fits():
    best, _ = plan(95.0, MIDDLE, lag=95.0 * 200)
    assert best.option == 2


@pytest.mark.parametrize(("rate", "late_s"), [(150.0, 45.0), (120.0, 90.0)])
def test_a_restart_is_late_until_its_backlog_is_drained(rate, late_s):
    """45 s of stop: 15 s above the objective, then 15 s of age to lose at rate / load - 1."""
    best, _ = plan(100.0, Option(8, 60.0), [Option(12, rate)])
    assert best.option == 0
    assert best.late_s == pytest.approx(late_s, abs=16)
