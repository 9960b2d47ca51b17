"""What must hold for every strategy, and what makes each of the baselines itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from sluice.model import Placement
from sluice.placement import PlacementRequest, placers
from tests.placement.brute import chain, mixed_cluster, small_requests

QUICK = [name for name in placers.names() if name != "odrp"]


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=30)
@given(request=small_requests())
def test_every_task_gets_a_slot_and_no_worker_too_many(name: str, request: PlacementRequest) -> None:
    placed = placers.create(name).place(request)
    assert placed.placement is not None
    assert placed.placement.parallelism == request.parallelism
    for worker in request.cluster.workers:
        assert sum(placed.placement.tasks[worker.name].values()) <= worker.slots


@pytest.mark.parametrize("name", placers.names())
def test_the_same_request_gives_the_same_plan_and_a_sentence(name: str) -> None:
    request = chain(2, 3, 2, workers=3, slots=3)
    placer = placers.create(name)
    assert placer.place(request).placement == placer.place(request).placement
    assert "7 tasks on 3 workers cost cpu" in placer.place(request).reason


@pytest.mark.parametrize("name", placers.names())
def test_pinned_tasks_stay(name: str) -> None:
    pinned = Placement(tasks={"w2": {"a": 2, "c": 1}})
    request = chain(2, 3, 2, workers=3, slots=3).model_copy(update={"pinned": pinned})
    placed = placers.create(name).place(request)
    assert placed.placement is not None
    assert placed.placement.tasks["w2"] == {"a": 2, "c": 1}


@pytest.mark.parametrize("name", placers.names())
def test_too_few_slots(name: str) -> None:
    placed = placers.create(name).place(chain(4, 4, workers=2, slots=3))
    assert (placed.feasible, placed.reason) == (False, "8 tasks need slots, the cluster has 6")


def test_default_fills_a_worker_before_the_next() -> None:
    placed = placers.create("default", {"seed": 7}).place(chain(4, 5, workers=4, slots=4))
    assert placed.placement is not None
    assert [sum(found.values()) for found in placed.placement.tasks.values()] == [4, 4, 1, 0]


def test_evenly_counts_tasks_out_by_the_size_of_workers() -> None:
    request = chain(4, 5, workers=3, slots=4)
    even = placers.create("evenly").place(request)
    assert even.placement is not None
    assert [sum(found.values()) for found in even.placement.tasks.values()] == [3, 3, 3]
    mixed = placers.create("evenly").place(request.model_copy(update={"cluster": mixed_cluster()}))
    assert mixed.placement is not None
    assert {name: sum(found.values()) for name, found in mixed.placement.tasks.items()} == {"s1": 2, "s2": 2, "l1": 5}


@pytest.mark.parametrize("name", ["default", "evenly"])
def test_seeds_draw_different_plans(name: str) -> None:
    request = chain(4, 8, 4, workers=4, slots=4)
    plans = {placers.create(name, {"seed": seed}).place(request).placement.to_json() for seed in range(6)}  # type: ignore[union-attr]
    assert len(plans) > 3


@pytest.mark.parametrize(
    ("objective", "least_slots", "most_slots"), [("default", 3, 8), ("latency", 12, 12), ("weighted", 3, 12)]
)
def test_odrp_chooses_slots_by_its_weights(objective: str, least_slots: int, most_slots: int) -> None:
    """Latency alone takes every slot there is; weighing slots as well leaves most of them."""
    odrp = placers.create("odrp", {"objective": objective, "joint": True})
    placed = odrp.place(chain(2, 6, 2, workers=3, slots=4))
    assert placed.placement is not None
    assert least_slots <= sum(placed.placement.parallelism.values()) <= most_slots


def test_odrp_keeps_what_talks_together_on_one_worker() -> None:
    placed = placers.create("odrp").place(chain(2, 2, workers=3, slots=4))
    assert placed.costs is not None
    assert placed.costs.net == 0
