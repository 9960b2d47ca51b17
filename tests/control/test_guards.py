"""Guards: the thesis' order, what each changes, and what always holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.control.guards import Guards, divide
from sluice.model import Graph, Operator, Recommendation

GRAPH = Graph(operators=(Operator(name="a"), Operator(name="b", max_parallelism=6), Operator(name="c")))
NOW = {"a": 2, "b": 2, "c": 2}


def guarded(guards, wish, *, time_s=100.0, last_rescale_s=None):
    return guards.apply(Recommendation(parallelism=wish, reason="1"), NOW, GRAPH, time_s, last_rescale_s)


def test_the_thesis_example_of_dividing_slots():
    assert divide({"a": 10, "b": 30, "c": 20}, 30) == {"a": 5, "b": 15, "c": 10}


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.integers(1, 50), min_size=1), st.integers(1, 120))
def test_dividing_keeps_the_total_and_the_minimum(wish, slots):
    fitted = divide(wish, slots)
    assert all(1 <= fitted[name] <= count for name, count in wish.items())
    assert sum(fitted.values()) == min(sum(wish.values()), max(slots, len(wish)))


@pytest.mark.parametrize(
    ("guards", "wish", "result", "note"),
    [
        (Guards(), {"a": 9}, {"a": 9, "b": 2, "c": 2}, None),
        (Guards(over_provisioning=1.2), {"a": 5}, {"a": 6, "b": 3, "c": 3}, "over-provisioning x1.2: a 5 -> 6"),
        (Guards(max_step=3), {"a": 9}, {"a": 5, "b": 2, "c": 2}, "at most +3 per action: a 9 -> 5"),
        (Guards(), {"b": 9}, {"a": 2, "b": 6, "c": 2}, "min/max parallelism: b 9 -> 6"),
        (Guards(min_parallelism=2), {"a": 1}, {"a": 2, "b": 2, "c": 2}, "min/max parallelism: a 1 -> 2"),
        (Guards(max_slots=5), {"a": 6}, {"a": 3, "b": 1, "c": 1}, "only 5 slots: a 6 -> 3, b 2 -> 1, c 2 -> 1"),
    ],
)
def test_every_guard_says_what_it_changed(guards, wish, result, note):
    left = guarded(guards, wish)
    assert left.parallelism == result
    assert (note in "; ".join(left.notes)) if note else left.notes == ()


def test_order_is_factor_then_step_then_bounds_then_slots():
    guards = Guards(over_provisioning=2.0, max_step=5, max_slots=12)
    left = guarded(guards, {"a": 5, "b": 5, "c": 1})
    assert [note.split(":")[0] for note in left.notes] == [
        "over-provisioning x2",
        "at most +5 per action",
        "min/max parallelism",
        "only 12 slots",
    ]


def test_a_factor_does_not_cost_a_slot_through_floating_point():
    assert guarded(Guards(over_provisioning=1.1), {"a": 10}).parallelism["a"] == 11


def test_cool_down_keeps_the_wish_but_does_not_let_it_through():
    guards = Guards(cooldown_s=300)
    quiet = guarded(guards, {"a": 9}, time_s=400, last_rescale_s=150)
    assert quiet.cooling
    assert quiet.notes == ("cool-down: 50 of 300 s left",)
    assert not guarded(guards, {"a": 9}, time_s=450, last_rescale_s=150).cooling
    assert not guarded(guards, {"a": 2}, time_s=400, last_rescale_s=150).cooling


def test_holding_is_not_scaled_up_by_a_factor():
    left = Guards(over_provisioning=2.0).apply(Recommendation.hold("no"), NOW, GRAPH, 0.0, None)
    assert left.parallelism == NOW


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"over_provisioning": 0}, "over_provisioning must be above 0, got 0"),
        ({"max_step": 0}, "max_step must be at least 1, got 0"),
        ({"max_slots": -1}, "max_slots must be at least 1, got -1"),
        (
            {"min_parallelism": 3, "max_parallelism": 2},
            r"max_parallelism must be at least min_parallelism \(3\), got 2",
        ),
        ({"cooldown_s": -1}, "cooldown_s must not be negative, got -1"),
    ],
)
def test_bad_limits_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Guards(**settings)
