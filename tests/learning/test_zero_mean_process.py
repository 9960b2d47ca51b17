"""The authors' process: through every sample, and back to 0 far from them."""

import numpy as np
import pytest

from sluice.learning.gaussian_process import BadMatrixError
from sluice.learning.history import History
from sluice.learning.zero_mean_process import ZeroMeanProcess, correlations

X, Y = [1.0, 2.0, 4.0, 8.0, 16.0], [10.0, 19.0, 35.0, 62.0, 105.0]


def test_it_passes_through_its_samples_and_is_sure_of_them():
    mean, variance = ZeroMeanProcess.fit(X, Y).predict(np.array(X))
    assert mean == pytest.approx(Y, rel=1e-3)
    assert np.sqrt(variance).max() < 0.01 * max(Y)


def test_far_from_the_samples_it_falls_back_to_nothing():
    process = ZeroMeanProcess.fit(X, Y)
    mean, variance = process.predict(np.array([16.0 + 10 * process.length_scale]))
    assert abs(mean[0]) < 1e-3 * max(Y)
    assert np.sqrt(variance[0]) == pytest.approx(process.amplitude)


def test_the_posterior_is_that_of_the_textbook():
    process = ZeroMeanProcess.fit(X, Y)
    at = np.array([3.0, 11.0])
    known = correlations(np.array(X), np.array(X), process.length_scale) + 1e-8 * np.eye(5)
    cross = correlations(at, np.array(X), process.length_scale)
    mean, variance = process.predict(at)
    assert mean == pytest.approx(cross @ np.linalg.solve(known, np.array(Y)), rel=1e-4)
    explained = np.einsum("ij,ji->i", cross, np.linalg.solve(known, cross.T))
    assert variance == pytest.approx(process.amplitude**2 * (1 - explained), rel=1e-2, abs=1e-3)


def test_repeats_are_averaged_and_a_tolerance_of_nothing_keeps_all():
    history = History()
    for capacity in (10.0, 30.0, 50.0):
        history = history.add(2, capacity, tolerance=0.0)
    assert history.forgotten == 0
    assert history.fit(process="zero-mean").predict(np.array([2.0]))[0][0] == pytest.approx(30.0, rel=1e-6)


def test_no_samples_are_refused():
    with pytest.raises(BadMatrixError):
        ZeroMeanProcess.fit([], [])
