"""Means, intervals and paired differences, against figures worked out by hand or by the textbook's table."""

import pytest

from sluice.lab.bench.statistics import METRICS, compare, estimate, score_groups


def row(policy, seed, **values):
    known = dict.fromkeys(METRICS, 0.0)
    return {"engine": "sim", "pipeline": "q1", "workload": "cosine", "policy": policy, "seed": seed, **known, **values}


def test_the_interval_is_students():
    # mean 2, standard deviation 1, t(0.975, 2) = 4.303
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.count) == (2.0, 3)
    assert found.high - found.mean == pytest.approx(4.3027 / 3**0.5, rel=1e-4)


@pytest.mark.parametrize(("values", "mean", "count"), [([], None, 0), ([None], None, 0), ([5.0, None], 5.0, 1)])
def test_too_little_gives_no_interval(values, mean, count):
    found = estimate(values)
    assert (found.mean, found.low, found.high, found.count) == (mean, None, None, count)


def test_groups_keep_their_order_and_do_not_mix():
    rows = [row("b", 0, avg_slots=4.0), row("a", 0, avg_slots=1.0), row("b", 1, avg_slots=6.0)]
    groups = score_groups(rows)
    assert [(group.policy, group.estimates["avg_slots"].mean) for group in groups] == [("b", 5.0), ("a", 1.0)]
    assert score_groups(reversed(rows)) == groups


def test_a_paired_comparison_sees_what_two_intervals_hide():
    ours = [row("ours", seed, avg_slots=10.0 * seed + 1 + 0.01 * seed) for seed in range(6)]
    theirs = [row("base", seed, avg_slots=10.0 * seed) for seed in range(6)]
    (found,) = compare([*ours, *theirs], "base", ["avg_slots"])
    assert found.difference.mean == pytest.approx(1.025)
    assert found.difference.low > 0.9
    assert found.p_value < 1e-6
    assert found.wilcoxon_p == pytest.approx(2 / 2**6)


def test_seeds_only_one_side_has_do_not_count():
    rows = [row("ours", 0, avg_slots=3.0), row("ours", 1, avg_slots=9.0), row("base", 0, avg_slots=1.0)]
    (found,) = compare(rows, "base", ["avg_slots"])
    assert (found.difference.mean, found.difference.count, found.p_value) == (2.0, 1, None)
