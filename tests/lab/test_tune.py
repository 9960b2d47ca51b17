"""Searching parameters: what is tried, and who wins."""

import pytest

from sluice.errors import BadInputError
from sluice.lab.tune import parse_range, rank, variants


@pytest.mark.parametrize(
    ("text", "values"),
    [("target=0.5,0.7", ["0.5", "0.7"]), ("target=0.5..0.7:3", ["0.5", "0.6", "0.7"]), ("warm_up=1..2:2", ["1", "2"])],
)
def test_ranges_read_as_written(text, values):
    assert parse_range(text)[1] == values


@pytest.mark.parametrize("text", ["target", "target=", "=1", "target=a..b:3"])
def test_ranges_that_mean_nothing_are_refused(text):
    with pytest.raises(BadInputError, match="--over takes"):
        parse_range(text)


def test_all_combinations_and_the_policy_as_it_is():
    found = variants("ds2", {"over_provisioning": ["1.0", "1.2"], "warm_up": ["0", "1", "2"]})
    assert found[0].label == "ds2"
    assert len({choice.label for choice in found}) == 7


def test_a_random_part_is_the_same_for_the_same_seed():
    ranges = {"over_provisioning": [str(number) for number in range(50)]}
    assert variants("ds2", ranges, at_most=5) == variants("ds2", ranges, at_most=5)
    assert len(variants("ds2", ranges, at_most=5)) == 6


def test_nothing_to_tune_is_refused():
    with pytest.raises(BadInputError, match="nothing to tune"):
        variants("ds2", {})


def test_the_cheapest_within_the_objective_wins_and_the_beaten_are_known():
    def row(policy, seed, cost, late):
        case = {"engine": "sim", "pipeline": "q1", "workload": "cosine"}
        return {**case, "policy": policy, "seed": seed} | {
            "cost_ratio": cost + 0.01 * seed,
            "slo_violation_ratio": late,
            "avg_slots": cost,
            "avg_latency_s": late,
        }

    rows = [
        row(policy, seed, cost, late)
        for policy, cost, late in [("default", 1.2, 0.2), ("good", 1.3, 0.05), ("bad", 1.4, 0.3), ("lavish", 3.0, 0.0)]
        for seed in range(4)
    ]
    found = {variant.policy: variant for variant in rank(rows)}
    assert list(found) == ["good", "default", "bad", "lavish"]
    assert [name for name, variant in found.items() if not variant.unbeaten] == ["bad"]
    assert found["default"].difference is None
    assert found["good"].difference.mean == pytest.approx(0.1 - 5 * 0.15)
    assert next(iter({v.policy: v for v in rank(rows, late_weight=0.0)})) == "default"
