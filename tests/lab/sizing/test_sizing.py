"""The experiments about sizes, in a short form."""

from __future__ import annotations

import numpy as np
import pytest

from sluice.lab.simulator import Linear, SimulatedOperator
from sluice.lab.simulator.sampling import SimulatedSampling
from sluice.lab.sizing.day import DailyLoad, DaySettings, dsa_samples, run_day
from sluice.lab.sizing.figures import draw_costs, draw_samples, draw_service
from sluice.lab.sizing.operators import OPERATORS, sampled_sizes
from sluice.lab.sizing.samplers import SAMPLERS, baseline, compare_models, compare_samplers
from sluice.learning.instance_sizes import EXAMPLE
from sluice.learning.sampled_sizes import SampledSizes
from sluice.learning.sampling import ConvergenceRule

pytest.importorskip("sklearn")

CO1, CO2, CMO1, CMO2 = OPERATORS


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
def test_sampling_on_the_simulator_finds_the_true_rate(operator):
    size = sampled_sizes()[9]
    sample = ConvergenceRule().measure(size, operator.target(seed=1).rates(size))
    assert sample.converged
    assert sample.rate == pytest.approx(operator.curve(size), rel=0.03)


def test_without_a_curve_cores_count():
    size = EXAMPLE[-1]
    rates = SimulatedSampling(SimulatedOperator(name="op", capacity=Linear(1000))).rates(size)
    assert next(rates) == pytest.approx(4000, rel=0.01)


@pytest.mark.slow
def test_dsa_takes_fewer_samples_than_fssa2_for_a_similar_error():
    scores = compare_samplers(CMO1, repeats=2)
    assert scores["DSA"].samples <= scores["FSSA2"].samples
    assert scores["DSA"].rmse <= 1.2 * scores["FSSA2"].rmse
    assert scores["FSSA5"].rmse > scores["FSSA2"].rmse


def test_models_are_compared_on_the_same_samples():
    scores = compare_models(CO2, ["forest", "svr"], repeats=1)
    assert scores["forest"].samples == scores["svr"].samples
    assert 0 < scores["forest"].mae <= scores["forest"].rmse < scores["svr"].rmse


def test_a_learned_profile_orders_the_sizes_as_the_curve_does():
    learned = SampledSizes(samples=dsa_samples(CMO1, DaySettings())).rates(EXAMPLE)
    for size in EXAMPLE[:-1]:
        assert learned[size.name] == pytest.approx(CMO1.curve(size), rel=0.12), size.name


def test_a_day_of_load_strays_from_the_days_before():
    load = DailyLoad(seed=4).values().reshape(8, -1)
    calm = DailyLoad(seed=4, surprise=0.0).values().reshape(8, -1)
    assert np.array_equal(load[:7], calm[:7])
    assert load[7].max() > calm[7].min()
    assert (load[7] / calm[7]).max() == pytest.approx(1.5)


@pytest.mark.slow
def test_mixed_sizes_cost_less_than_the_best_single_one_at_the_same_latency(tmp_path):
    settings = DaySettings(interval_s=300.0, load=DailyLoad(seed=2))
    samples = dsa_samples(CMO1, settings)
    small, medium = EXAMPLE[2:4]
    runs = {
        "QCESA": run_day(CMO1, settings, samples=samples),
        "CBA small": run_day(CMO1, settings, sizes=(small,), planner="CBA small", samples=samples),
        "CBA medium": run_day(CMO1, settings, sizes=(medium,), planner="CBA medium", samples=samples),
    }
    assert runs["QCESA"].total_cost < min(runs["CBA small"].total_cost, runs["CBA medium"].total_cost)
    assert runs["QCESA"].summary.p95_latency_s <= 1.0
    assert 0 < runs["QCESA"].forecast_error < 0.3
    assert np.all(np.diff(runs["QCESA"].cost) > 0)
    draw_costs(runs, tmp_path / "costs.html")
    draw_service(runs, tmp_path / "service.html")
    assert "CBA medium" in (tmp_path / "costs.html").read_text()
    assert "load" in (tmp_path / "service.html").read_text()


def test_the_samples_can_be_drawn(tmp_path):
    taken = {"CO1": SAMPLERS["DSA"].sample(CO1.target(0), sampled_sizes())}
    draw_samples(taken, {"CO1": baseline(CO1, 0)}, tmp_path / "deep" / "samples.html")
    assert "sampled by DSA" in (tmp_path / "deep" / "samples.html").read_text()
