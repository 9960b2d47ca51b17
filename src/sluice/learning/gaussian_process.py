"""A Gaussian process over one number, made for a dozen noisy points and a refit at every decision.

Prior mean a power law, squared-exponential kernel, targets normalised, hyper-parameters by marginal likelihood:

    y = rate * x^exponent + scale * (f(x) + noise * N(0, 1))
    cov f(x), f(x') = amplitude^2 * exp(-(x - x')^2 / (2 * length_scale^2))

A constant prior mean would make a capacity fall back to the average of what was seen. With one sample the law is the
line through the origin, as the linear methods have it; further samples bend it, for coordination eats into every
further instance.

Repeated samples of one x are merged into their mean, whose noise variance is `noise^2 / n`; what they scatter around
that mean enters the likelihood as its own term, so the noise is learned from repeats exactly as if every sample
had its own row, at the price of the distinct x only.

A few points cannot fix three hyper-parameters. Their logarithms are therefore bounded (no length scale shorter
than two gaps between neighbours, none longer than a few times the range) and carry weak normal priors, which
decide alone when the data say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluice.errors import SluiceError
from sluice.learning.likelihood import Posterior

Vector = NDArray[np.float64]

NOISE_BOUNDS = (1e-3, 1.0)
"""In normalised targets. The floor keeps the condition number of the kernel matrix near 1e8, so that no
jitter is needed: a matrix that still is not positive definite is a bad one, and says so."""
AMPLITUDE_BOUNDS = (0.1, 10.0)
SMALLEST_SCALE = 0.1
"""What the law does not explain is divided by its deviation, but at least by this share of the law at its far end: two
samples that lie on it do not mean that all do."""
EXPONENTS = (0.3, 1.1)
LENGTHS_TRIED = 3
SMALL = 32
"""Rows of a matrix that no library shares among threads."""
TRUST_IN_LINEARITY = 0.02
"""Weight of the prior that the exponent is 1, in units of the spread of log x: it decides for neighbours alone."""


class BadMatrixError(SluiceError):
    """The kernel matrix is not positive definite in spite of its noise: the samples are not numbers to learn from."""


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """In units of x (length scale) and of the normalised targets (amplitude, noise: standard deviations)."""

    length_scale: float
    amplitude: float
    noise: float


@dataclass(frozen=True)
class CapacityLaw:
    """`rate * x^exponent`, for positive x."""

    rate: float
    exponent: float

    @staticmethod
    def of(x: Vector, y: Vector) -> CapacityLaw:
        """Least squares in logarithms; targets of 0 say nothing about a law of this form and are left out."""
        usable = y > 0
        if not usable.any():
            return CapacityLaw(0.0, 1.0)
        log_x, log_y = np.log(x[usable]), np.log(y[usable])
        from_mean = log_x - log_x.mean()
        spread = float(from_mean @ from_mean)
        fitted = (float(from_mean @ log_y) + TRUST_IN_LINEARITY) / (spread + TRUST_IN_LINEARITY)
        exponent = min(max(fitted, EXPONENTS[0]), EXPONENTS[1])
        return CapacityLaw(float(np.exp(np.mean(log_y - exponent * log_x))), exponent)

    def __call__(self, x: Vector) -> Vector:
        return self.rate * x**self.exponent


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples:
    """Distinct positions, normalised mean of the samples at each, and how much they scatter; sorted by position."""

    x: Vector
    y: Vector
    count: Vector
    scatter: float
    """Sum of squared deviations of all samples from the mean at their position."""
    law: CapacityLaw
    scale: float

    @staticmethod
    def of(x: Sequence[float], y: Sequence[float], reach: float = 0.0) -> Samples:
        """`reach` is the largest position to predict, where it lies beyond the samples."""
        given_x, given_y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if given_x.ndim != 1 or given_x.shape != given_y.shape or not given_x.size:
            raise BadMatrixError(f"a fit needs as many targets as positions, got {given_y.size} for {given_x.size}")
        if not (np.isfinite(given_x).all() and np.isfinite(given_y).all() and (given_x > 0).all()):
            raise BadMatrixError("a fit needs finite samples at positive positions, got one that is not")
        at, group, count = np.unique(given_x, return_inverse=True, return_counts=True)
        mean = np.bincount(group, weights=given_y) / count
        law = CapacityLaw.of(at, mean)
        residual = mean - law(at)
        far = float(law(np.array([max(float(at.max()), reach)]))[0])
        scale = max(float(np.sqrt(np.mean(residual**2))), SMALLEST_SCALE * far) or 1.0
        scatter = float(np.sum(((given_y - mean[group]) / scale) ** 2))
        return Samples(x=at, y=residual / scale, count=count.astype(float), scatter=scatter, law=law, scale=scale)

    def length_bounds(self) -> tuple[float, float]:
        """A bend takes three samples to be seen, and anything much longer than the range is a line."""
        if self.x.size == 1:
            return (2.0, 16.0)
        shortest = 2.0 * median(np.diff(self.x).tolist())
        return (shortest, 4.0 * max(float(self.x[-1] - self.x[0]), shortest))

    def posterior(self) -> Posterior:
        """The prior is centred on what we expect unseen: half the range, the targets' own deviation, little noise."""
        low, high = self.length_bounds()
        centre = np.log([max(low, high / 8.0), 1.0, 0.05])
        return Posterior(x=self.x, y=self.y, count=self.count, scatter=self.scatter, centre=centre)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianProcess:
    """A fitted process. `predict` is what its users call."""

    samples: Samples
    hyperparameters: Hyperparameters
    whitening: NDArray[np.float64]
    """Inverse of the Cholesky factor of the noisy kernel matrix."""
    weights: Vector

    @staticmethod
    def fit(
        x: Sequence[float], y: Sequence[float], *, reach: float = 0.0, hyperparameters: Hyperparameters | None = None
    ) -> GaussianProcess:
        """Fit, choosing hyper-parameters by marginal likelihood unless they are given. Same data, same object."""
        return _fit(tuple(map(float, x)), tuple(map(float, y)), float(reach), hyperparameters)

    def predict(self, x: Sequence[float] | Vector) -> tuple[Vector, Vector]:
        """Mean and variance of the function itself (not of a noisy sample of it), in the targets' own units."""
        at = np.asarray(x, dtype=float)
        chosen = self.hyperparameters
        away = (at[:, None] - self.samples.x[None, :]) / chosen.length_scale
        cross = chosen.amplitude**2 * np.exp(-0.5 * away**2)
        with one_thread(len(at)):
            whitened = cross @ self.whitening.T
            mean = self.samples.law(at) + self.samples.scale * (cross @ self.weights)
        variance = chosen.amplitude**2 - np.einsum("ij,ij->i", whitened, whitened)
        return mean, np.maximum(variance, 0.0) * self.samples.scale**2

    @property
    def noise(self) -> float:
        """Standard deviation of one sample, in the targets' own units."""
        return self.hyperparameters.noise * self.samples.scale


@cache
def _blas() -> Any:
    """The threads of numpy's linear algebra; null where threadpoolctl, which only saves time, is not installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return None
    return ThreadpoolController()


def one_thread(rows: int) -> AbstractContextManager[object]:
    """Matrices of a hundred rows are too small to share: on a busy machine threads made a fit 50 times slower."""
    if rows <= SMALL or (blas := _blas()) is None:
        return nullcontext()
    context: AbstractContextManager[object] = blas.limit(limits=1)
    return context


@lru_cache(maxsize=512)
def _fit(x: tuple[float, ...], y: tuple[float, ...], reach: float, given: Hyperparameters | None) -> GaussianProcess:
    samples = Samples.of(x, y, reach)
    try:
        with one_thread(len(samples.x)):
            chosen = given or choose_hyperparameters(samples)
            theta = np.log([chosen.length_scale, chosen.amplitude, chosen.noise])
            whitening = np.linalg.inv(np.linalg.cholesky(samples.posterior().covariance(theta)[1]))
            weights = whitening.T @ (whitening @ samples.y)
    except np.linalg.LinAlgError as error:
        raise BadMatrixError(
            f"kernel matrix of {samples.x.size} positions is not positive definite, noise included"
        ) from error
    return GaussianProcess(samples=samples, hyperparameters=chosen, whitening=whitening, weights=weights)


def choose_hyperparameters(samples: Samples) -> Hyperparameters:
    """The most likely ones inside the bounds: the best of a few length scales, then up from there."""
    bounds = np.log([samples.length_bounds(), AMPLITUDE_BOUNDS, NOISE_BOUNDS])
    posterior = samples.posterior()
    starts = np.tile(posterior.centre, (LENGTHS_TRIED, 1))
    starts[:, 0] = np.linspace(bounds[0, 0], bounds[0, 1], LENGTHS_TRIED + 1)[:-1]
    length_scale, amplitude, noise = np.exp(posterior.most_likely(starts, bounds[:, 0], bounds[:, 1])).tolist()
    return Hyperparameters(length_scale=length_scale, amplitude=amplitude, noise=noise)
