import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, nnls

from sluice.errors import BadInputError
from sluice.learning.throughput import (
    LinearFunction,
    MinimumFunction,
    TanhFunction,
    fitted_function,
    given_function,
    nonnegative_least_squares,
)

FUNCTIONS = [
    LinearFunction(k=(1.5, 0.5)),
    MinimumFunction(k=(2.0, 3.0)),
    TanhFunction(k1=9.0, k2=(0.1, 0.05)),
]
inputs = st.tuples(st.floats(0.1, 50), st.floats(0.1, 50))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.kind)
@given(at=inputs)
@settings(max_examples=40)
def test_gradients_agree_with_finite_differences(function, at):
    point = np.array(at)
    if function.kind == "minimum" and abs(2.0 * point[0] - 3.0 * point[1]) < 1e-3:
        return
    numeric = approx_fprime(point, lambda e: float(function.value(e)), 1e-6)
    np.testing.assert_allclose(function.gradient(point), numeric, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.kind)
@given(one=inputs, other=inputs)
@settings(max_examples=40)
def test_all_are_increasing_and_concave(function, one, other):
    a, b = np.array(one), np.array(other)
    assert float(function.value((a + b) / 2)) >= (float(function.value(a)) + float(function.value(b))) / 2 - 1e-9
    assert float(function.value(np.maximum(a, b))) >= float(function.value(a)) - 1e-9


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.kind)
def test_many_points_at_once_are_the_points_one_by_one(function):
    points = np.random.default_rng(0).uniform(0.1, 50, (2, 7))
    np.testing.assert_allclose(function.value(points), [float(function.value(p)) for p in points.T])
    np.testing.assert_allclose(function.gradient(points).T, [function.gradient(p) for p in points.T])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.kind)
def test_regression_finds_the_function_behind_noisy_windows(function):
    rng = np.random.default_rng(1)
    received = rng.uniform(1, 40, (40, 2))
    emitted = [float(function.value(e)) * (1 + 0.005 * rng.standard_normal()) for e in received]
    found = fitted_function(function.kind, received, emitted)
    at = rng.uniform(1, 40, (2, 50))
    np.testing.assert_allclose(found.value(at), function.value(at), rtol=0.03, atol=0.1)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=60)
def test_nonnegative_weights_are_those_scipy_finds(seed, dimensions):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 1, (dimensions + 4, dimensions))
    targets = rows @ rng.uniform(-1, 2, dimensions) + 0.1 * rng.standard_normal(len(rows))
    np.testing.assert_allclose(nonnegative_least_squares(rows, targets), nnls(rows, targets)[0], atol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "minimum", "tanh"])
def test_an_operator_that_emits_nothing_has_a_function_near_0(kind):
    found = fitted_function(kind, [[float(rate), 2.0] for rate in range(1, 9)], [0.0] * 8)
    assert float(found.value(np.array([5.0, 2.0]))) == pytest.approx(0.0, abs=1e-4)


def test_one_window_is_enough_for_a_selectivity():
    assert fitted_function("linear", [[1000.0]], [8000.0]).k == pytest.approx((8.0,))


@pytest.mark.parametrize("data", [{"kind": "cubic", "k": [1]}, {"kind": "linear"}, {"kind": "linear", "k": [-1]}])
def test_a_function_that_is_none_is_refused_by_name(data):
    with pytest.raises(BadInputError, match="function of a>b"):
        given_function(data, "function of a>b")
