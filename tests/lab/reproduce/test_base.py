import pytest

from sluice.lab.reproduce.base import Verdict, figure, order


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        (2.4, 2.4, Verdict.WITHIN),
        (2.4, 2.99, Verdict.WITHIN),
        (2.4, 3.01, Verdict.DIFFERS),
        (2.4, None, Verdict.DIFFERS),
    ],
)
def test_a_figure_is_near_when_it_is_within_the_tolerance(paper, ours, verdict):
    row = figure("ds2", paper, ours, because="the curve is flatter")
    assert row.verdict == verdict
    assert row.note == ("the curve is flatter" if verdict == Verdict.DIFFERS else "")


def test_the_order_holds_through_ties_and_breaks_on_a_swap():
    paper = {"ds2": 2.40, "big-ds2": 2.37, "conttune": 1.29}
    assert order("mean", paper, {"ds2": 2.0, "big-ds2": 2.1, "conttune": 1.5}).verdict == Verdict.ORDER_HOLDS
    broken = order("mean", paper, {"ds2": 2.0, "big-ds2": 2.1, "conttune": 2.5}, because="of the curve")
    assert broken.verdict == Verdict.DIFFERS
    assert broken.note == "conttune is not below ds2; conttune is not below big-ds2 because of the curve"
    assert broken.ours == "ds2 < big-ds2 < conttune"
