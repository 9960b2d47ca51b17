"""Which worker every partition goes to: a function of the plan and of where things are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.model import Placement
from sluice.spark.placed.assignment import fitted, moved, source_workers, state_workers

SLOTS = {"a": 4, "b": 4, "c": 4}


def placed(**tasks: dict[str, int]) -> Placement:
    return Placement(tasks=tasks)


def test_a_placement_whose_workers_are_there_stays_as_it_is():
    wanted = placed(a={"map": 2}, b={"map": 1, "count": 3}, c={})
    assert fitted(wanted, {"map": 3, "count": 3}, SLOTS) == wanted


def test_instances_of_a_lost_worker_go_to_where_most_is_free():
    wanted = placed(a={"map": 2}, b={"map": 1, "count": 3}, gone={"count": 2})
    found = fitted(wanted, {"map": 3, "count": 5}, SLOTS)
    assert found.of("count") == {"b": 3, "c": 2}
    assert found.parallelism == {"map": 3, "count": 5}


@pytest.mark.parametrize(("instances", "counts"), [(1, {"a": 1}), (2, {"a": 1, "b": 1}), (6, {"a": 2, "b": 2, "c": 2})])
def test_a_placement_is_fitted_to_the_instances_there_are(instances, counts):
    found = fitted(placed(a={"map": 2}, b={"map": 1}), {"map": instances}, SLOTS)
    assert sum(found.of("map").values()) == instances
    if instances == 6:
        assert found.of("map") == counts


def test_too_few_slots_overfill_workers_rather_than_lose_instances():
    assert fitted(placed(gone={"map": 9}), {"map": 9}, {"a": 2, "b": 2}).parallelism == {"map": 9}


def test_source_partitions_follow_the_counts():
    assert source_workers({"b": 1, "a": 2}) == ["a", "a", "b"]


@pytest.mark.parametrize("partitions", [1, 3, 8, 16])
def test_every_worker_has_its_instances_share_of_the_state(partitions):
    found = state_workers({"a": 2, "b": 1}, partitions)
    assert len(found) == partitions
    assert abs(found.count("a") - partitions * 2 / 3) < 1


def test_only_the_state_that_must_move_moves():
    before = state_workers({"a": 1, "b": 1}, 8)
    after = state_workers({"a": 1, "b": 1, "c": 2}, 8, before)
    assert sorted(after) == ["a", "a", "b", "b", "c", "c", "c", "c"]
    assert moved(before, after) == 4
    assert state_workers({"a": 2, "b": 2}, 8, before) == before


def test_what_shares_a_worker_with_a_hot_partition_leaves_it_and_stays_away():
    weights = [7.0, 1, 1, 1, 1, 1, 1, 1]
    before = state_workers({"a": 1, "b": 1}, 8)
    found = state_workers({"a": 1, "b": 1}, 8, before, weights)
    assert found[0] == before[0]
    assert (before.count("a"), found.count("a")) == (4, 2)
    assert state_workers({"a": 1, "b": 1}, 8, found, weights) == found
    wobbling = [6.5, 1.2, 0.9, 1, 1.1, 1, 1, 1]
    assert state_workers({"a": 1, "b": 1}, 8, found, wobbling) == found


def test_partitions_that_differ_a_little_are_divided_by_number():
    before = state_workers({"a": 1, "b": 1}, 8)
    assert state_workers({"a": 1, "b": 1}, 8, before, [1.4, 1, 1, 1, 1, 1, 1, 0.6]) == before


def test_a_heavy_partition_goes_where_the_heavy_task_is_and_has_it_alone():
    weights = [0.05, 0.1, 0.4, 0.1, 0.1, 0.1, 0.1, 0.05]
    before = state_workers({"a": 1, "b": 3}, 8)
    found = state_workers({"b": 3}, 8, before, weights, ["a"])
    assert [worker for partition, worker in enumerate(found) if partition != 2] == ["b"] * 7
    assert found[2] == "a"
    shared = state_workers({"a": 1, "b": 2}, 8, before, weights, ["a"])
    assert shared[2] == "a"
    assert shared.count("a") in (3, 4)
    assert state_workers({"a": 1, "b": 2}, 8, shared, weights, ["a"]) == shared


@given(
    counts=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 4), min_size=1),
    weights=st.lists(st.floats(0, 1), min_size=1, max_size=20),
    data=st.data(),
)
def test_every_partition_has_just_one_worker_whatever_is_heavy(counts, weights, data):
    before = data.draw(st.just([]) | st.lists(st.sampled_from("abcdx"), min_size=len(weights), max_size=len(weights)))
    heavy = data.draw(st.lists(st.sampled_from("abcdef"), max_size=len(weights) - 1))
    found = state_workers(counts, len(weights), before, weights, heavy)
    assert len(found) == len(weights)
    assert set(found) <= {*counts, *heavy}
    heaviest = sorted(range(len(weights)), key=lambda one: -weights[one])[: len(heavy)]
    assert [found[one] for one in heaviest] == heavy
    assert {found[one] for one in range(len(weights)) if one not in heaviest} <= set(counts)


def test_a_heavy_task_is_fitted_with_its_worker():
    wanted = Placement(tasks={"a": {"count": 1}, "gone": {"count": 2}}, heavy={"a": {"count": (0.4,)}})
    assert fitted(wanted, {"count": 3}, SLOTS).heavy_of("count") == [("a", 0.4)]
    lost = Placement(tasks=wanted.tasks, heavy={"gone": {"count": (0.4,)}})
    assert fitted(lost, {"count": 3}, SLOTS).heavy_of("count") == []
