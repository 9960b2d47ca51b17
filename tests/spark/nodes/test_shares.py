"""Which node serves whom, and how much of the input each reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.spark.nodes.provider import WorkerNode
from sluice.spark.nodes.shares import assign, assign_shared, bounded_slots, nodes_needed, slot_worths
from tests.spark.nodes.fakes import LARGE, SMALL


def nodes(**types: str) -> dict[str, WorkerNode]:
    return {name: WorkerNode(name=name, type=kind, host=f"h-{name}") for name, kind in types.items()}


def test_every_instance_gets_a_node_of_its_type_and_keeps_it():
    ready = nodes(a="small", b="small", c="large")
    mixes = {"map": {"small": 1}, "count": {"small": 1, "large": 1}}
    found = assign(mixes, ready, {"b": ("map",)})
    assert found.nodes == {"b": ("map",), "a": ("count",), "c": ("count",)}
    assert (found.kept, found.missing) == ({}, {})


def test_what_is_replaced_works_on_until_the_new_node_is_there():
    before = {"a": ("map",), "b": ("map",)}
    waiting = assign({"map": {"large": 1}}, nodes(a="small", b="small"), before)
    assert waiting.serving == before
    assert waiting.missing == {"map": {"large": 1}}
    there = assign({"map": {"large": 1}}, nodes(a="small", b="small", c="large"), waiting.serving)
    assert there.serving == {"c": ("map",)}


def test_a_node_that_one_operator_gives_up_serves_another_before_a_new_one_is_started():
    found = assign({"map": {}, "count": {"small": 1}}, nodes(a="small"), {"a": ("map",)})
    assert (found.serving, found.missing) == ({"a": ("count",)}, {})


def test_a_lost_node_is_missing():
    assert assign({"map": {"small": 2}}, nodes(a="small"), {"a": ("map",), "gone": ("map",)}).missing == {
        "map": {"small": 1}
    }


def test_nodes_of_all_operators_are_added_up():
    mixes = {"map": {"small": 2}, "count": {"small": 1, "large": 1}}
    assert nodes_needed(mixes, shared=False) == {"small": 3, "large": 1}
    assert nodes_needed(mixes, shared=True) == {"small": 2, "large": 1}


def test_a_slot_is_worth_its_cores_until_its_speed_is_known():
    slots = {"s": 1, "l": 2}
    types = {"s": SMALL, "l": LARGE}
    by_cores = slot_worths(slots, types, {})
    assert by_cores["l"] / by_cores["s"] == pytest.approx(2)
    measured = slot_worths(slots, types, {"s": 100.0, "l": 130.0})
    assert measured["l"] / measured["s"] == pytest.approx(1.3)
    one_known = slot_worths(slots, types, {"s": 100.0})
    assert one_known["l"] / one_known["s"] == pytest.approx(2)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 8), min_size=1), st.integers(1, 12), st.integers(1, 12))
def test_tasks_keep_to_an_operators_bounds_and_leave_no_node_out(slots, least, most):
    found = bounded_slots(slots, min(least, most), max(least, most, len(slots)))
    assert min(found.values()) >= 1
    assert min(least, most) <= sum(found.values()) <= max(least, most, len(slots))


def test_operators_that_share_nodes_wait_for_the_same_ones():
    mixes = {"map": {"small": 2}, "count": {"small": 2, "large": 1}}
    first = assign_shared(mixes, nodes(a="small"), {})
    assert first.serving == {"a": ("map", "count")}
    assert first.missing_nodes == {"small": 1, "large": 1}
    there = assign_shared(mixes, nodes(a="small", b="small", c="large"), first.serving)
    assert there.serving == {"a": ("map", "count"), "b": ("map", "count"), "c": ("count",)}
    assert there.missing_nodes == {}


def test_a_shared_node_that_is_replaced_works_on_for_all_of_its_operators():
    before = {"a": ("map", "count")}
    waiting = assign_shared({"map": {"large": 1}, "count": {"large": 1}}, nodes(a="small"), before)
    assert waiting.serving == before
    after = assign_shared({"map": {"large": 1}, "count": {"large": 1}}, nodes(a="small", c="large"), before)
    assert after.serving == {"c": ("map", "count")}
