"""What a curve makes of measurements, and how it doubts."""

from __future__ import annotations

import pytest

from sluice.dataflow.capacity_curve import PRIOR_SLOPE, CapacityCurve


def measured(*windows: tuple[int, float], bends: bool = True) -> CapacityCurve:
    (first, rate), *rest = windows
    curve = CapacityCurve.of(first, rate)
    for instances, rate in rest:
        curve = curve.learned(instances, rate, 1.0, bends=bends)
    return curve


@pytest.mark.parametrize("exponent", [0.6, 0.85, 1.0])
def test_the_slope_follows_what_more_instances_brought(exponent):
    curve = measured(*[(p, 100.0 * p**exponent) for p in (2, 2, 2, 4, 4, 4, 12, 12, 12)])
    assert curve.slope == pytest.approx(exponent, abs=0.07)
    assert curve.rate(20) == pytest.approx(100.0 * 20**exponent, rel=0.08)


def test_it_is_monotone_and_more_cautious_further_away():
    curve = measured((4, 400.0), (4, 410.0))
    rates = [curve.rate(p, caution=1.0) for p in range(1, 30)]
    assert rates == sorted(rates)
    assert curve.rate(8, 1.0) / curve.rate(8) < curve.rate(5, 1.0) / curve.rate(5) < 1
    assert curve.rate(1, 1.0) / curve.rate(1) < curve.rate(3, 1.0) / curve.rate(3) < 1


def test_more_instances_that_bring_nothing_are_noticed():
    """A slow system behind the sink: 100 rec/s with 2 instances, and with 8."""
    curve = measured((2, 100.0), (2, 100.0), (8, 100.0), (8, 101.0))
    assert curve.is_limited
    assert not measured((2, 100.0), (2, 100.0), (8, 350.0), (8, 360.0)).is_limited


def test_at_its_limit_a_curve_may_bend_at_once():
    """It grew as it should from 1 to 3, so the slope seems known; then 5 instances carry what 3 did."""
    known = measured(*[(p, 100.0 * p) for p in (1, 1, 1, 3, 3, 3)])
    busy = known.learned(5, 300.0, 1.0, bends=True)
    full = known.learned(5, 300.0, 2.0, bends=True, at_limit=True)
    assert not busy.is_limited
    assert full.is_limited
    assert full.learned(5, 305.0, 1.0, bends=True).is_limited, "a quieter window later does not take it back"
    assert not known.learned(5, 480.0, 2.0, bends=True, at_limit=True).is_limited


def test_one_odd_window_changes_nothing_two_end_the_anchor():
    once = measured((4, 400.0), (4, 400.0), (4, 150.0))
    assert once.rate(4) == pytest.approx(400.0)
    twice = once.learned(4, 150.0, 1.0, bends=True)
    assert twice.rate(4) == pytest.approx(150.0)


def test_without_bends_the_slope_stays():
    assert measured((2, 100.0), (8, 100.0), bends=False).slope == PRIOR_SLOPE


def test_it_survives_a_list():
    curve = measured((2, 100.0), (8, 300.0), (8, 310.0))
    assert CapacityCurve.from_list(curve.to_list()) == curve


def test_a_step_of_one_instance_tells_little_of_the_slope():
    """Six carry nearly what seven did, a tenth of which is something else: three do not carry nearly as much, too."""
    seven = measured(*[(7, 700.0)] * 6)
    six = seven.learned(6, 660.0, 2.0, bends=True, at_limit=True).learned(6, 660.0, 2.0, bends=True, at_limit=True)
    assert six.rate(3) < 420.0
    two = seven.learned(2, 350.0, 2.0, bends=True).learned(2, 350.0, 2.0, bends=True)
    assert two.slope < 0.75, "what five instances bring tells more"
