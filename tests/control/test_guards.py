"""Guards: the thesis' order, what each changes, and what always holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.control.guards import Guards, Situation, divide
from sluice.model import Graph, Observation, Operator, OperatorMetrics, Recommendation, Target

GRAPH = Graph(operators=(Operator(name="a"), Operator(name="b", max_parallelism=6), Operator(name="c")))
NOW = {"a": 2, "b": 2, "c": 2}


def situation(target=NOW, *, graph=GRAPH, sizes=None, time_s=100.0, last_action_s=None):
    operators = {name: OperatorMetrics(parallelism=count) for name, count in target.items()}
    return Situation(
        target=Target(parallelism=target, sizes=sizes or {}),
        graph=graph,
        observation=Observation(time_s=time_s, interval_s=10, operators=operators),
        last_action_s=last_action_s,
    )


def guarded(guards, counts, **parts):
    return guards.apply(Recommendation(parallelism=counts, reason="1"), situation(**parts))


def test_the_thesis_example_of_dividing_slots():
    assert divide({"a": 10, "b": 30, "c": 20}, 30) == {"a": 5, "b": 15, "c": 10}


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.integers(1, 50), min_size=1), st.integers(1, 120))
def test_dividing_keeps_the_total_and_the_minimum(counts, slots):
    fitted = divide(counts, slots)
    assert all(1 <= fitted[name] <= count for name, count in counts.items())
    assert sum(fitted.values()) == min(sum(counts.values()), max(slots, len(counts)))


@pytest.mark.parametrize(
    ("guards", "counts", "result", "note"),
    [
        (Guards(), {"a": 9}, {"a": 9, "b": 2, "c": 2}, None),
        (Guards(over_provisioning=1.2), {"a": 5}, {"a": 6, "b": 2, "c": 2}, "over-provisioning x1.2: a 5 -> 6"),
        (Guards(max_step=3), {"a": 9}, {"a": 5, "b": 2, "c": 2}, "at most +3 per action: a 9 -> 5"),
        (Guards(), {"b": 9}, {"a": 2, "b": 6, "c": 2}, "min/max parallelism: b 9 -> 6"),
        (Guards(min_parallelism=2), {"a": 1}, {"a": 2, "b": 2, "c": 2}, "min/max parallelism: a 1 -> 2"),
        (Guards(max_slots=5), {"a": 6}, {"a": 3, "b": 1, "c": 1}, "only 5 slots: a 6 -> 3, b 2 -> 1, c 2 -> 1"),
    ],
)
def test_every_guard_says_what_it_changed(guards, counts, result, note):
    left = guarded(guards, counts)
    assert left.target.parallelism == result
    assert (note in "; ".join(left.notes)) if note else left.notes == ()


@pytest.mark.parametrize(
    ("guards", "counts", "pinned", "result"),
    [
        (Guards(over_provisioning=2.0), {"a": 3}, {"a": 5}, {"a": 5, "b": 2, "c": 2}),
        (Guards(), {}, {"a": 5}, {"a": 5, "b": 2, "c": 2}),
        (Guards(), {"a": 9}, {"a": 2}, NOW),
        (Guards(max_step=2), {}, {"a": 9}, {"a": 4, "b": 2, "c": 2}),
        (Guards(), {}, {"b": 9}, {"a": 2, "b": 6, "c": 2}),
        (Guards(), {"a": 4}, {"gone": 3}, {"a": 4, "b": 2, "c": 2}),
    ],
)
def test_a_pin_takes_the_place_of_the_recommendation_and_is_bounded_like_it(guards, counts, pinned, result):
    given_now = replace(situation(), pinned=pinned)
    assert guards.apply(Recommendation(parallelism=counts, reason="1"), given_now).target.parallelism == result


def test_a_pin_of_one_operator_is_that_of_all_that_share_their_instances():
    graph = GRAPH.model_copy(update={"shared": True})
    given_now = replace(situation(graph=graph), pinned={"a": 4})
    left = Guards().apply(Recommendation(parallelism={"a": 1, "b": 6}, reason="1"), given_now)
    assert left.target.parallelism == {"a": 4, "b": 4, "c": 4}


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
    assert guarded(Guards(over_provisioning=1.1), {"a": 10}).target.parallelism["a"] == 11


def test_cooldown_keeps_the_proposal_on_record_but_not_in_force():
    guards = Guards(cooldown_s=300)
    quiet = guarded(guards, {"a": 9}, time_s=400, last_action_s=150)
    assert quiet.cooling
    assert quiet.notes == ("cooldown: 50 of 300 s left",)
    assert not guarded(guards, {"a": 9}, time_s=450, last_action_s=150).cooling
    assert not guarded(guards, {"a": 2}, time_s=400, last_action_s=150).cooling


def test_holding_is_not_scaled_up_by_a_factor():
    left = Guards(over_provisioning=2.0).apply(Recommendation.hold("no"), situation())
    assert left.target.parallelism == NOW


def test_a_factor_does_not_compound_on_operators_that_the_recommendation_does_not_name():
    guards, target = Guards(over_provisioning=1.25), {"a": 2, "b": 5, "c": 1}
    for _ in range(4):
        target = guarded(guards, {"a": 4}, target=target).target.parallelism
    assert target == {"a": 5, "b": 5, "c": 1}


def test_fitting_into_the_slots_stops_at_an_operator_s_minimum():
    graph = Graph(operators=(Operator(name="a"), Operator(name="b", min_parallelism=4), Operator(name="c")))
    left = guarded(Guards(max_slots=8), {"a": 20, "b": 4, "c": 2}, graph=graph, target={"a": 2, "b": 4, "c": 2})
    assert left.target.parallelism["b"] == 4
    assert left.target.slots == 8


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(1, 50), st.integers(1, 9)), min_size=1),
    st.integers(1, 120),
)
def test_dividing_respects_every_minimum(needs, slots):
    counts = {name: max(count, least) for name, (count, least) in needs.items()}
    least = {name: least for name, (_, least) in needs.items()}
    fitted = divide(counts, slots, least)
    assert all(least[name] <= fitted[name] <= counts[name] for name in counts)
    assert sum(fitted.values()) == min(sum(counts.values()), max(slots, sum(least.values())))


def sized(mix, guards, *, count=None, **parts):
    parallelism = {} if count is None else {"a": count}
    recommendation = Recommendation(parallelism=parallelism, sizes={"a": mix}, reason="1")
    return guards.apply(recommendation, situation(**parts))


def test_sizes_follow_the_guarded_parallelism():
    left = sized({"small": 6, "large": 3}, Guards(max_parallelism=3), count=9)
    assert left.target.parallelism["a"] == 3
    assert left.target.sizes["a"] == {"small": 2, "large": 1}
    assert left.notes[-1] == "sizes of a: 6 small + 3 large -> 2 small + 1 large"


def test_sizes_alone_set_the_parallelism_and_grow_with_a_minimum():
    assert sized({"small": 2, "large": 1}, Guards()).target.parallelism["a"] == 3
    left = sized({"small": 2, "large": 1}, Guards(min_parallelism=5))
    assert left.target.sizes["a"] == {"small": 4, "large": 1}


def test_a_change_of_sizes_alone_waits_for_the_cooldown_too():
    left = sized(
        {"large": 2}, Guards(cooldown_s=300), count=2, sizes={"a": {"small": 2}}, time_s=400, last_action_s=150
    )
    assert left.cooling


def test_operators_that_share_instances_are_capped_before_they_are_weighed():
    """What a query cannot use is not asked for: its own limit counts before the mean is taken."""
    graph = Graph(operators=(Operator(name="a"), Operator(name="b", max_parallelism=2)), shared=True)
    left = guarded(Guards(max_parallelism=8), {"a": 6, "b": 9}, graph=graph, target={"a": 2, "b": 2})
    assert left.target.parallelism == {"a": 4, "b": 4}


@pytest.mark.parametrize("guards", [Guards(), Guards(max_slots=2)])
def test_operators_that_share_instances_have_no_fewer_than_the_minimum_of_each(guards):
    graph = Graph(operators=(Operator(name="a", min_parallelism=4), Operator(name="b")), shared=True)
    left = guarded(guards, {"a": 4, "b": 1}, graph=graph, target={"a": 6, "b": 6})
    assert left.target.parallelism == {"a": 4, "b": 4}


def test_an_unknown_work_share_weighs_queries_the_same():
    graph = Graph(operators=(Operator(name="a"), Operator(name="b")), shared=True)
    left = guarded(Guards(), {"a": 3, "b": 1}, graph=graph, target={"a": 2, "b": 2})
    assert left.target.parallelism == {"a": 2, "b": 2}


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


@pytest.mark.parametrize(
    ("guards", "most"),
    [
        (Guards(), None),
        (Guards(max_parallelism=16), 16),
        (Guards(max_slots=20), 18),
        (Guards(max_slots=20, min_parallelism=3), 14),
        (Guards(max_slots=20, max_parallelism=16), 16),
        (Guards(max_slots=2), 1),
    ],
)
def test_the_guards_say_how_many_instances_one_of_three_operators_may_have(guards, most):
    assert guards.most_instances(3) == most


def test_a_policy_that_leaves_its_largest_parallelism_open_gets_the_guards_one():
    from sluice.protocol import bounded, policies

    assert bounded(policies.create("dragster"), 16).largest == 16
    assert bounded(policies.create("dragster"), None).largest == 10
    assert bounded(policies.create("dragster", {"max_parallelism": 4}), 16).largest == 4
    assert bounded(policies.create("ds2"), 16) == policies.create("ds2")


def test_a_bound_from_outside_is_named_in_the_reason():
    read = Operator(name="read", min_parallelism=4, max_parallelism=4, bound_by="one task per partition of 'orders'")
    graph = Graph(operators=(read,), edges=())
    notes: list[str] = []
    assert Guards()._bound({"read": 9}, graph, notes) == {"read": 4}
    assert notes == ["min/max parallelism (one task per partition of 'orders'): read 9 -> 4"]


def test_a_bound_of_the_user_is_not_said_to_come_from_outside():
    few = Operator(name="few", min_parallelism=2, max_parallelism=8, bound_by="no stage has more tasks")
    graph = Graph(operators=(few,), edges=())
    notes: list[str] = []
    assert Guards()._bound({"few": 1}, graph, notes) == {"few": 2}
    assert Guards(max_parallelism=5)._bound({"few": 9}, graph, notes) == {"few": 5}
    assert Guards()._bound({"few": 9}, graph, notes) == {"few": 8}
    assert notes == [
        "min/max parallelism: few 1 -> 2",
        "min/max parallelism: few 9 -> 5",
        "min/max parallelism (no stage has more tasks): few 9 -> 8",
    ]
