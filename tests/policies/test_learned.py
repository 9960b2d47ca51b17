"""What policies that learn say of what they believe: curves over the samples they saw, and a forecast."""

import pytest

from sluice.journal.file import MemoryJournal
from sluice.lab.pipelines import pipelines
from sluice.lab.run import RunSpec, run, simulated_engine
from sluice.lab.workloads import workloads
from sluice.model.learned import POINTS, curve_points
from sluice.protocol import policies


def last_learned(policy, settings=None, duration_s=1800.0):
    spec = RunSpec(
        pipeline=pipelines.create("q1"),
        policy=policies.create(policy, settings),
        workload=workloads.create("cosine"),
        duration_s=duration_s,
        seed=1,
    )
    journal = MemoryJournal()
    engine, initial = simulated_engine(spec)
    run(spec, engine, initial, journal)
    asked = [report.cycle for report in journal.reports() if report.cycle.recommendation.learned is not None]
    return asked[-1]


@pytest.mark.parametrize("policy", ["conttune", "dragster"])
def test_a_curve_goes_through_what_was_measured(policy):
    cycle = last_learned(policy)
    curves = cycle.recommendation.learned.curves
    assert set(curves) == set(cycle.observation.operators)
    for curve in curves.values():
        assert len(curve.parallelism) <= POINTS + 1
        assert all(low <= mean <= high for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True))


def test_a_forecast_begins_now_and_has_a_band():
    cycle = last_learned("qescalor", {"epoch_s": 60.0, "season_s": 0.0, "horizon": 4})
    forecast = cycle.recommendation.learned.forecast
    assert len(forecast.time_s) == 4
    assert forecast.time_s[1] > cycle.time_s
    assert all(low <= mean <= high for low, mean, high in zip(forecast.low, forecast.mean, forecast.high, strict=True))


@pytest.mark.parametrize(("most", "points"), [(1, [1]), (3, [1, 2, 3]), (90, [1, *range(10, 83, 9), 90])])
def test_points_are_spread_over_all_parallelisms(most, points):
    assert curve_points(most) == points
