"""What policies are told of how large a job may become."""

from __future__ import annotations

import pytest

from sluice.control.guards import Guards
from sluice.control.limits import most_slots
from sluice.model import Graph, Operator


def graph(*highs: int | None, shared: bool = False) -> Graph:
    operators = tuple(Operator(name=f"op{number}", max_parallelism=high) for number, high in enumerate(highs))
    return Graph(operators=operators, shared=shared)


@pytest.mark.parametrize(
    ("guards", "job", "most"),
    [
        (Guards(), graph(None, None), None),
        (Guards(max_slots=80), graph(None, None), 80),
        (Guards(max_slots=80), graph(3, None), 80),
        (Guards(max_slots=80), graph(3, 4), 7),
        (Guards(max_parallelism=5), graph(3, None), 8),
        (Guards(max_parallelism=5, max_slots=6), graph(None, None), 6),
        (Guards(max_slots=1), graph(None, None), 2),
    ],
)
def test_the_tightest_limit_counts(guards, job, most):
    assert most_slots(guards, job) == most


def test_operators_that_share_their_instances_have_all_of_them_at_once():
    assert most_slots(Guards(max_slots=4), graph(None, None, shared=True)) == 8
    assert most_slots(Guards(max_parallelism=4), graph(None, None, shared=True)) == 8
