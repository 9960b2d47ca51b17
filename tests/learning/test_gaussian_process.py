import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from sluice.learning.gaussian_process import (
    AMPLITUDE_BOUNDS,
    NOISE_BOUNDS,
    BadMatrixError,
    GaussianProcess,
    Hyperparameters,
    Samples,
    choose_hyperparameters,
)
from sluice.learning.likelihood import Posterior

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
    posterior = Samples.of(x, list(noisy_capacity(2, x))).posterior()
    for theta in (np.log([2.0, 1.0, 0.1]), np.log([7.0, 0.4, 0.5])):
        numeric = approx_fprime(theta, lambda at: posterior.at(at).value, 1e-7)
        np.testing.assert_allclose(posterior.at(theta).gradient, numeric, rtol=1e-4, atol=1e-4)


def test_the_expected_curvature_is_the_mean_over_samples_drawn_from_the_process():
    x, theta = np.array([1.0, 2.0, 4.0, 5.0, 9.0]), np.log([3.0, 0.8, 0.2])
    count = np.array([3.0, 1.0, 2.0, 1.0, 1.0])
    rng = np.random.default_rng(5)

    def posterior(y, scatter):
        return Posterior(x=x, y=y, count=count, scatter=scatter, centre=theta)

    factor = np.linalg.cholesky(posterior(x, 0.0).covariance(theta)[1])
    curvature = np.zeros((3, 3))
    draws = 3000
    for _ in range(draws):
        drawn = posterior(factor @ rng.standard_normal(5), 0.2**2 * rng.chisquare(3))
        slopes = [drawn.at(theta + step).gradient - drawn.at(theta - step).gradient for step in 1e-4 * np.eye(3)]
        curvature += np.array(slopes) / 2e-4 / draws
    expected = posterior(x, 0.0).at(theta).expected_curvature()
    np.testing.assert_allclose(curvature, expected, rtol=0.1, atol=0.15)


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0.0, 0.02, 0.3]))
@settings(max_examples=60)
def test_no_other_search_finds_more_likely_hyperparameters(seed, size, noise):
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 40, size)
    samples = Samples.of(x.tolist(), noisy_capacity(seed, x, noise, contention=0.05).tolist())
    chosen = choose_hyperparameters(samples)
    ours = np.log([chosen.length_scale, chosen.amplitude, chosen.noise])
    posterior = samples.posterior()
    other = minimize(
        lambda theta: ((point := posterior.at(theta)).value, point.gradient),
        ours,
        jac=True,
        method="L-BFGS-B",
        bounds=np.log([samples.length_bounds(), AMPLITUDE_BOUNDS, NOISE_BOUNDS]),
    )
    value = posterior.at(ours).value
    assert value <= other.fun + 1e-4 * (1 + abs(value))


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
@settings(max_examples=60)
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
