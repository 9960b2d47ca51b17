"""Utilisation of slots and waiting tasks: what they make together."""

from __future__ import annotations

import pytest

from sluice.policies.databricks import Databricks
from tests.policies.jobs import decisions, job, recommended


def query(busy, lag=0.0, **metrics):
    """Each of 4 instances reads 100 rec/s at most: a task is 1500 records."""
    return job(query={"parallelism": 4, "busy": busy, "input_rate": 400.0 * busy, "lag": lag, **metrics})


def test_busy_slots_and_a_queue_bring_more():
    assert recommended(Databricks(), query(0.95, lag=6000.0)) == {"query": 8}
    assert recommended(Databricks(largest_factor=1.5), query(0.95, lag=6000.0)) == {"query": 6}


@pytest.mark.parametrize("seen", [query(0.95), query(0.6, lag=60000.0), query(0.6)])
def test_one_of_both_alone_brings_nothing(seen):
    assert recommended(Databricks(), seen) == {}


def test_what_waits_at_the_source_waits_for_the_operator_that_holds_it_up():
    source = {"parallelism": 2, "busy": 0.3, "input_rate": 300.0, "lag": 15_000.0}
    slow = {"parallelism": 2, "busy": 0.9, "input_rate": 300.0}
    assert recommended(Databricks(), job("source>slow", source=source, slow=slow)) == {"source": 2, "slow": 4}
    assert recommended(Databricks(), job("slow>source", source=source, slow=slow)) == {}


def test_idle_slots_are_released_after_a_while():
    made = decisions(Databricks(), [query(0.2)] * 4)
    assert [one.parallelism.get("query") for one in made] == [None, None, None, 2]


def test_unknown_utilisation_holds():
    made = decisions(Databricks(), [job(query={"parallelism": 4})])
    assert made[0].is_hold
    assert "no utilisation known of any of 1" in made[0].reason


@pytest.mark.parametrize(
    ("settings", "quoted"),
    [
        ({"low": 0.9}, "0.9 and 0.8"),
        ({"target": 0.0}, "got 0.0"),
        ({"largest_factor": 1.0}, "got 1.0"),
        ({"patience": 0}, "got 0"),
    ],
)
def test_parameters_out_of_range_are_quoted(settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        Databricks(**settings)
