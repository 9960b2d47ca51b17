import pytest

from sluice.lab.bench.statistics import Estimate
from sluice.lab.report.figures import figure, narrow, plain, with_unit


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (1_298_765.4, "1,298,765"),
        (1.3e6, "1,300,000"),
        (12.345, "12.3"),
        (9.996, "10"),
        (100.0, "100"),
        (0.0004, "0.0004"),
        (-0.0567, "-0.0567"),
        (1e-9, "0"),
    ],
)
def test_numbers_have_three_digits_and_no_exponent(value, said):
    assert plain(value) == said


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Estimate(mean=None, low=None, high=None, count=0), "-"),
        (Estimate(mean=12.345, low=None, high=None, count=1), "12.3"),
        (Estimate(mean=12.345, low=11.845, high=12.845, count=5), "12.3 ± 0.5"),
        (Estimate(mean=1234.5, low=1200.0, high=1269.0, count=5), "1,234 ± 34"),
        (Estimate(mean=2.5e6, low=1.2e6, high=3.8e6, count=5), "2,500,000 ± 1,300,000"),
    ],
)
def test_means_carry_half_their_interval(found, said):
    assert figure(found) == said


@pytest.mark.parametrize(("value", "said"), [(None, "-"), ("40+", "40+"), (650_000.0, "650,000 records/s")])
def test_units_follow_numbers_only(value, said):
    assert with_unit(value, "records/s") == said


def test_on_a_terminal_they_are_short():
    assert narrow(Estimate(mean=0.8972, low=0.8903, high=0.9041, count=5)) == "0.897±0.007"
