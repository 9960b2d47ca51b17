"""How many plans there are: the paper's figure, a brute force, and the search itself must agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from sluice.errors import BadInputError
from sluice.model import Placement
from sluice.placement import PlacementRequest
from sluice.placement.enumeration import NO_LIMITS, count_plans, count_within, list_plans
from sluice.placement.problem import build
from tests.placement.brute import all_plans, chain, mixed_cluster, small_requests


def enumerated(request: PlacementRequest, room: int = 20_000) -> int:
    arrays = build(request).arrays
    plans, finished = list_plans(arrays, NO_LIMITS, most=room, budget=10**9)
    assert finished
    assert len({plan.tobytes() for plan in plans}) == len(plans)
    return len(plans)


def test_the_query_of_section_3_2_has_exactly_80_plans() -> None:
    request = chain(1, 2, 5, 8, workers=4, slots=4)
    assert count_plans(build(request)) == 80
    assert enumerated(request) == 80


@pytest.mark.parametrize(
    ("parallelism", "workers", "slots", "plans"),
    [
        ((1,), 1, 1, 1),
        ((4,), 4, 4, 5),  # the partitions of 4
        ((6,), 3, 6, 7),  # the partitions of 6 into at most 3 parts
        ((2, 2, 4, 1), 3, 3, 16),  # the example of figure 4
        ((2, 2), 2, 1, 0),
        ((4, 4, 4, 4, 4), 8, 4, 27_009_659),
        # numbers of tasks that give the counts printed for Q3-inf and Q2-join in section 3.3 and table 2
        ((1, 3, 3, 4, 5), 4, 4, 950),
        ((1, 1, 1, 2, 4, 7), 4, 4, 665),
        ((4, 4, 6, 8, 10), 8, 4, 3_254_014),
    ],
)
def test_counts_of_other_graphs(parallelism: tuple[int, ...], workers: int, slots: int, plans: int) -> None:
    assert count_plans(build(chain(*parallelism, workers=workers, slots=slots))) == plans


@settings(max_examples=60)
@given(small_requests())
def test_counting_listing_and_brute_force_agree(request: PlacementRequest) -> None:
    expected = len(all_plans(request))
    assert count_plans(build(request)) == expected
    assert enumerated(request) == expected


def test_workers_of_different_sizes_or_with_pinned_tasks_are_not_interchangeable() -> None:
    mixed = chain(2, 3, workers=1, slots=9).model_copy(update={"cluster": mixed_cluster()})
    pinned = mixed.model_copy(update={"pinned": Placement(tasks={"s1": {"a": 1}, "l1": {"b": 1}})})
    for request in (mixed, pinned):
        assert count_plans(build(request)) == enumerated(request) == len(all_plans(request))
    assert count_plans(build(pinned)) < count_plans(build(mixed))


def test_a_count_out_of_reach_says_so() -> None:
    with pytest.raises(BadInputError, match="count a smaller graph or cluster"):
        count_plans(build(chain(60, 60, 60, 60, workers=16, slots=16)))


@pytest.mark.parametrize("reordered", [True, False])
def test_counting_by_walking_the_tree_finds_the_plans_that_listing_finds(reordered: bool) -> None:
    arrays = build(chain(1, 2, 5, 8, workers=4, slots=4), reordered=reordered).arrays
    for limit in (float("inf"), 0.6, 0.3):
        limits = NO_LIMITS.copy()
        limits[0] = limit
        plans, finished = list_plans(arrays, limits, most=1000, budget=10**7)
        assert finished
        assert count_within(arrays, limits, budget=10**7)[::2] == (len(plans), True)
    assert count_within(arrays, NO_LIMITS, budget=10)[2] is False
