"""The Gaussian process of ContTune's authors: mean 0, squared-exponential kernel, jitter instead of noise.

    cov f(x), f(x') = amplitude^2 * exp(-(x - x')^2 / (2 * length_scale^2))

It passes through every sample, and a length scale or two away from the last one it falls back to 0. Hyper-parameters
by marginal likelihood, as in the code published with the paper. The amplitude that maximises the likelihood is
known in closed form, `amplitude^2 = y' R^-1 y / n` with the correlations R: only the length scale is searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sluice.learning.gaussian_process import BadMatrixError, Vector

JITTER = 1e-8
"""On the diagonal, in units of the amplitude: the authors' figure."""
LENGTH_SCALES = np.geomspace(0.1, 1000.0, 121)
"""Searched one by one: the likelihood has several maxima, and a dozen samples are quick to try."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ZeroMeanProcess:
    """A fitted process over one number."""

    x: Vector
    length_scale: float
    amplitude: float
    factor: Vector
    """Cholesky factor of the correlations with their jitter."""
    weights: Vector

    @staticmethod
    def fit(x: Sequence[float], y: Sequence[float]) -> ZeroMeanProcess:
        """One target per position: repeated samples are averaged before (the authors' mean reversion)."""
        return _fit(tuple(map(float, x)), tuple(map(float, y)))

    def predict(self, x: Sequence[float] | Vector) -> tuple[Vector, Vector]:
        """Mean and variance, in the targets' own units."""
        cross = correlations(np.asarray(x, dtype=float), self.x, self.length_scale)
        solved = np.linalg.solve(self.factor, cross.T)
        variance = self.amplitude**2 * np.maximum(1.0 - np.einsum("ij,ij->j", solved, solved), 0.0)
        return cross @ self.weights, variance


def correlations(x: Vector, other: Vector, length_scale: float) -> Vector:
    away = (x[:, None] - other[None, :]) / length_scale
    correlated: Vector = np.exp(-0.5 * away**2)
    return correlated


@lru_cache(maxsize=512)
def _fit(x: tuple[float, ...], y: tuple[float, ...]) -> ZeroMeanProcess:
    at, targets = np.array(x), np.array(y)
    if not at.size or not (np.isfinite(at).all() and np.isfinite(targets).all()):
        raise BadMatrixError("a fit needs finite samples, got none or one that is not")
    best: tuple[float, ZeroMeanProcess] | None = None
    for length_scale in LENGTH_SCALES.tolist():
        try:
            factor = np.asarray(
                np.linalg.cholesky(correlations(at, at, length_scale) + JITTER * np.eye(at.size)), float
            )
        except np.linalg.LinAlgError:
            continue
        weights = np.asarray(np.linalg.solve(factor.T, np.linalg.solve(factor, targets)), float)
        amplitude = float(np.sqrt(max(float(targets @ weights), 0.0) / at.size))
        if amplitude == 0:
            continue
        loss = float(at.size * np.log(amplitude) + np.log(np.diag(factor)).sum())
        if best is None or loss < best[0]:
            best = (
                loss,
                ZeroMeanProcess(x=at, length_scale=length_scale, amplitude=amplitude, factor=factor, weights=weights),
            )
    if best is None:
        raise BadMatrixError(f"no length scale fits the {at.size} samples")
    return best[1]
