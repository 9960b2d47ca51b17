import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from sluice.modelling.gp import (
    AMPLITUDE_BOUNDS,
    NOISE_BOUNDS,
    BadMatrixError,
    GaussianProcess,
    Hyperparameters,
    Samples,
    negative_log_posterior,
    prior_centre,
)

KNOWN = Hyperparameters(length_scale=3.0, amplitude=0.8, noise=0.1)


def noisy_capacity(seed, positions, noise=0.02, rate=500.0, contention=0.02):
    rng = np.random.default_rng(seed)
    x = np.asarray(positions, dtype=float)
    return x * rate / (1 + contention * (x - 1)) * (1 + noise * rng.standard_normal(x.size))


def test_posterior_is_the_one_scikit_learn_computes_from_every_single_sample():
    sklearn = pytest.importorskip("sklearn.gaussian_process")
    x = [1, 1, 1, 2, 5, 5, 9, 12]
    y = noisy_capacity(1, x)
    ours = GaussianProcess.fit(x, y, hyperparameters=KNOWN)
    law, scale = ours.samples.law, ours.samples.scale
    kernel = KNOWN.amplitude**2 * sklearn.kernels.RBF(KNOWN.length_scale)
    theirs = sklearn.GaussianProcessRegressor(kernel, alpha=KNOWN.noise**2, optimizer=None)
    theirs.fit(np.array(x)[:, None], (y - law(np.array(x, dtype=float))) / scale)
    at = np.arange(1.0, 20.0)
    mean, variance = ours.predict(at)
    expected, deviation = theirs.predict(at[:, None], return_std=True)
    np.testing.assert_allclose(mean, law(at) + scale * expected, rtol=1e-9)
    np.testing.assert_allclose(variance, (deviation * scale) ** 2, rtol=1e-6, atol=1e-9 * scale**2)


@pytest.mark.parametrize("x", [[4], [1, 2, 4, 8], [1, 1, 1, 2, 5, 5, 9, 12]])
def test_gradient_of_the_likelihood_agrees_with_finite_differences(x):
    samples = Samples.of(x, list(noisy_capacity(2, x)))
    squared = (samples.x[:, None] - samples.x[None, :]) ** 2
    centre = prior_centre(samples)
    for theta in (np.log([2.0, 1.0, 0.1]), np.log([7.0, 0.4, 0.5])):
        numeric = approx_fprime(theta, lambda at: negative_log_posterior(at, samples, squared, centre)[0], 1e-7)
        gradient = negative_log_posterior(theta, samples, squared, centre)[1]
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_repeated_samples_teach_the_noise(noise):
    x = np.repeat(np.arange(1, 9), 12)
    rng = np.random.default_rng(3)
    y = 500.0 * x / (1 + 0.03 * (x - 1)) + 500.0 * noise * 8 * rng.standard_normal(x.size)
    assert GaussianProcess.fit(list(x), list(y)).noise == pytest.approx(500.0 * noise * 8, rel=0.2)


def test_noise_free_samples_are_met_and_the_gaps_between_them_are_filled():
    seen, curve = [1, 2, 4, 6, 8, 10, 13, 16], lambda p: 500.0 * p / (1 + 0.03 * (p - 1))
    fitted = GaussianProcess.fit(seen, [curve(p) for p in seen])
    mean, _ = fitted.predict(np.arange(1.0, 17.0))
    np.testing.assert_allclose(mean, [curve(p) for p in range(1, 17)], atol=0.01 * curve(16))


def test_far_from_all_samples_an_operator_is_expected_to_scale_in_proportion_and_doubt_is_large():
    fitted = GaussianProcess.fit([4], [2000.0], reach=40)
    mean, variance = fitted.predict([4, 40])
    assert mean == pytest.approx([2000.0, 20000.0], rel=0.01)
    assert variance[1] > 100 * variance[0]


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.floats(0, 1e9, allow_nan=False)),
        min_size=1,
        max_size=12,
        unique_by=lambda s: s,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_dozen_samples_give_finite_predictions_and_hyperparameters_inside_their_bounds(samples):
    x, y = zip(*samples, strict=True)
    fitted = GaussianProcess.fit(x, y)
    chosen = fitted.hyperparameters
    low, high = Samples.of(x, y).length_bounds()
    for value, (least, most) in [
        (chosen.length_scale, (low, high)),
        (chosen.amplitude, AMPLITUDE_BOUNDS),
        (chosen.noise, NOISE_BOUNDS),
    ]:
        assert least * (1 - 1e-9) <= value <= most * (1 + 1e-9)
    mean, variance = fitted.predict(np.arange(1.0, 91.0))
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ([], [], "as many targets"),
        ([1, 2], [1.0], "as many targets"),
        ([1, 2], [1.0, float("nan")], "finite"),
        ([1, float("inf")], [1.0, 2.0], "finite"),
        ([0, 1], [1.0, 2.0], "positive positions"),
    ],
)
def test_samples_that_cannot_be_learned_from_are_refused(x, y, says):
    with pytest.raises(BadMatrixError, match=says):
        GaussianProcess.fit(x, y)


def test_a_matrix_that_is_not_positive_definite_is_reported_and_not_repaired():
    broken = Hyperparameters(length_scale=1e9, amplitude=1e9, noise=1e-12)
    with pytest.raises(BadMatrixError, match="not positive definite"):
        GaussianProcess.fit([1, 2, 3], [1.0, 2.0, 3.0], hyperparameters=broken)
