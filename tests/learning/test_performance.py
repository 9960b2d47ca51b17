"""The performance model on samples of a known curve."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from sluice.errors import BadInputError
from sluice.learning.instance_sizes import ResourceCurve
from sluice.learning.performance import KINDS, PerformanceModel, errors, tuned
from sluice.learning.sampling import Sample, growing_sizes
from sluice.model import InstanceSize

pytest.importorskip("sklearn")

CURVE = ResourceCurve(
    rate_per_core=1000, threads=3, contention=0.1, overhead_mb=200, working_set_mb=3000, miss_penalty=1
)
SIZES = growing_sizes(count=20, first_cores=0.4, step_cores=0.2, memory_per_core_mb=1024)
SAMPLES = tuple(Sample(size=size, rate=CURVE(size)) for size in SIZES)


def kinds():
    for kind in KINDS:
        missing = kind == "xgboost" and importlib.util.find_spec("xgboost") is None
        yield pytest.param(kind, marks=pytest.mark.skipif(missing, reason="needs sluice[xgboost]"))


@pytest.mark.parametrize("kind", list(kinds()))
def test_every_kind_learns_the_curve(kind):
    predicted = PerformanceModel(SAMPLES, kind).rates(SIZES)
    assert errors(predicted, [sample.rate for sample in SAMPLES]).rmse < 0.1


@pytest.mark.skipif(importlib.util.find_spec("xgboost") is not None, reason="xgboost is installed")
def test_a_missing_extra_is_named():
    with pytest.raises(BadInputError, match=r"sluice\[xgboost\]"):
        PerformanceModel(SAMPLES, "xgboost").rates(SIZES)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(BadInputError, match=r"needs the package scikit-learn: install sluice\[learning\]"):
        PerformanceModel(SAMPLES, seed=99).rates(SIZES)


def test_equal_samples_give_equal_predictions():
    again = tuple(sample.model_copy() for sample in SAMPLES)
    assert np.array_equal(PerformanceModel(SAMPLES).rates(SIZES), PerformanceModel(again).rates(SIZES))


def test_orders_sizes_it_was_not_shown():
    model = PerformanceModel(SAMPLES[::2])
    small, large = (InstanceSize(name=str(c), cpu_cores=c, memory_mb=1024 * c) for c in (0.9, 2.1))
    assert model.rate(small) < model.rate(large)


def test_memory_alone_can_make_the_difference():
    samples = [
        Sample(size=InstanceSize(name=f"{cores}-{memory}", cpu_cores=cores, memory_mb=memory), rate=rate)
        for cores, memory, rate in [(1, 1000, 50), (1, 4000, 100), (2, 1000, 60), (2, 4000, 200)]
    ] * 5
    model = PerformanceModel(tuple(samples))
    starved, fed = (InstanceSize(name="x", cpu_cores=2, memory_mb=memory) for memory in (1000, 4000))
    assert model.rate(fed) > 2 * model.rate(starved)


def test_production_that_agrees_changes_nothing():
    model = PerformanceModel(SAMPLES)
    seen = [Sample(size=SIZES[5], rate=model.rate(SIZES[5]) * 1.1)]
    assert model.corrected(seen, tolerance=0.15) is model
    assert model.corrected([]) is model


def test_production_that_contradicts_moves_the_whole_curve():
    model = PerformanceModel(SAMPLES)
    seen = [Sample(size=size, rate=model.rate(size) / 2) for size in SIZES[4:7]]
    corrected = model.corrected(seen, tolerance=0.15)
    assert corrected.rates(SIZES) == pytest.approx(model.rates(SIZES) / 2, rel=0.1)


@pytest.mark.parametrize(
    ("samples", "kind", "words"),
    [
        ((), "forest", "at least one sample"),
        (SAMPLES, "oracle", "unknown performance model 'oracle'"),
        ((SAMPLES[0].model_copy(update={"rate": 0.0}),), "forest", "rate 0"),
    ],
)
def test_refuses_what_it_cannot_learn_from(samples, kind, words):
    with pytest.raises(BadInputError, match=words):
        PerformanceModel(samples, kind)


def test_errors_are_relative_to_the_largest_rate():
    found = errors([110, 190], [100, 200])
    assert (found.rmse, found.mae) == (pytest.approx(0.05), pytest.approx(0.05))


def test_the_search_finds_settings_that_predict_what_was_held_out():
    few = SAMPLES[::3]
    found = tuned(few, kinds=("svr",))
    assert found.tried > 1
    assert found.model.settings
    truth = [sample.rate for sample in SAMPLES]
    plain = errors(PerformanceModel(few, "svr").rates(SIZES), truth).rmse
    assert errors(found.model.rates(SIZES), truth).rmse < plain


def test_kinds_are_compared_and_too_few_samples_are_not_searched():
    found = tuned(SAMPLES, kinds=("forest", "svr"))
    alone = {kind: tuned(SAMPLES, kinds=(kind,)).rmse for kind in ("forest", "svr")}
    assert found.rmse == min(alone.values())
    assert tuned(SAMPLES[:3]).rmse is None


def test_equal_sizes_are_held_out_together():
    twice = (*SAMPLES[:2], *SAMPLES[:2])
    assert tuned(twice).rmse > 0.01
    assert tuned((SAMPLES[0],) * 4).model == PerformanceModel((SAMPLES[0],) * 4)
