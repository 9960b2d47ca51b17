"""How likely hyper-parameters are, and the search for the most likely ones.

The search is BFGS with Powell's damping inside bounds. It begins with the expected curvature

    F_ij = tr(C^-1 dC/dtheta_i C^-1 dC/dtheta_j) / 2 + that of the prior

which is positive definite everywhere, and returns to it when a step leads nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PRIOR_DEVIATION = np.array([1.0, 0.7, 1.0])
"""Of the logarithms of length scale, amplitude and noise."""
MOST_STEPS = 30
MOST_HALVINGS = 12
NEAR_ENOUGH = 1e-6
"""A step that promises less than this share of the value ends the search."""
ENOUGH_DESCENT = 1e-4
DAMPING = 0.2

_IDENTITY = np.eye(len(PRIOR_DEVIATION))


@dataclass(frozen=True, eq=False, kw_only=True)
class Posterior:
    """Of the hyper-parameters; `theta` holds the logarithms of length scale, amplitude and noise.

    `y` are means of `count` samples at each `x`, `scatter` is the sum of squares of all samples around them, and
    `centre` is where the normal prior of `theta` is centred.
    """

    x: Floats
    y: Floats
    count: Floats
    scatter: float
    centre: Floats

    @cached_property
    def squared_distances(self) -> Floats:
        squares: Floats = np.subtract.outer(self.x, self.x) ** 2
        return squares

    @cached_property
    def repeats(self) -> float:
        """Degrees of freedom that tell about noise alone."""
        return float(self.count.sum() - self.count.size)

    def covariance(self, theta: Floats) -> tuple[Floats, Floats]:
        """The kernel matrix, and the same with the noise of each mean on its diagonal."""
        kernel: Floats = np.exp(2.0 * theta[1] - 0.5 * np.exp(-2.0 * theta[0]) * self.squared_distances)
        noisy = kernel.copy()
        noisy.flat[:: self.x.size + 1] += np.exp(2.0 * theta[2]) / self.count
        return kernel, noisy

    def at(self, theta: Floats) -> PosteriorPoint:
        """Raises `LinAlgError` where the covariance is not positive definite."""
        kernel, noisy = self.covariance(theta)
        factor = np.linalg.cholesky(noisy)
        inverse = np.asarray(np.linalg.inv(noisy), dtype=float)
        weights = inverse @ self.y
        noise_variance = float(np.exp(2.0 * theta[2]))
        away = (theta - self.centre) / PRIOR_DEVIATION
        value = (
            0.5 * (self.y @ weights)
            + np.log(factor.diagonal()).sum()
            + self.repeats * theta[2]
            + 0.5 * self.scatter / noise_variance
            + 0.5 * (away @ away)
        )
        slope = (np.multiply.outer(weights, weights) - inverse) * kernel
        by_noise = (weights**2 - inverse.diagonal()) @ (noise_variance / self.count)
        gradient = np.array(
            [
                -0.5 * np.exp(-2.0 * theta[0]) * np.vdot(slope, self.squared_distances),
                -slope.sum(),
                self.repeats - self.scatter / noise_variance - by_noise,
            ]
        )
        return PosteriorPoint(self, theta, float(value), gradient + away / PRIOR_DEVIATION, kernel, inverse)

    def most_likely(self, starts: Floats, low: Floats, high: Floats) -> Floats:
        """The best of the starts, one per row, and from there to the most likely inside the bounds."""
        here = min((self.at(start) for start in starts), key=lambda point: point.value)
        curvature, is_expected = here.expected_curvature(), True
        for _ in range(MOST_STEPS):
            better = self._better(here, curvature, low, high)
            if better is not None:
                curvature = _updated(curvature, better.theta - here.theta, better.gradient - here.gradient)
                here, is_expected = better, False
            elif is_expected:
                break
            else:
                curvature, is_expected = here.expected_curvature(), True
        return here.theta

    def _better(self, here: PosteriorPoint, curvature: Floats, low: Floats, high: Floats) -> PosteriorPoint | None:
        """A point along Newton's step that is better by a fair share of what the slope promises."""
        step = _newton_step(here.theta, here.gradient, curvature, low, high)
        for halving in range(MOST_HALVINGS):
            theta = np.minimum(np.maximum(here.theta + step * 0.5**halving, low), high)
            promised = here.gradient @ (here.theta - theta)
            if promised <= NEAR_ENOUGH * (1.0 + abs(here.value)) * 0.5**halving:
                return None
            there = self.at(theta)
            if there.value <= here.value - ENOUGH_DESCENT * promised:
                return there
        return None


@dataclass(frozen=True, eq=False)
class PosteriorPoint:
    """Minus log marginal likelihood of all samples minus log prior, up to a constant, with its gradient."""

    posterior: Posterior
    theta: Floats
    value: float
    gradient: Floats
    kernel: Floats
    inverse: Floats

    def expected_curvature(self) -> Floats:
        """Of the value, if the samples really came from such a process."""
        count, inverse = self.posterior.count, self.inverse
        noise = np.exp(2.0 * self.theta[2]) / count
        # with B = C^-1 N and N the noise, C^-1 times the derivatives is `by_length`, 2 (1 - B) and 2 B
        by_length = inverse @ (self.kernel * self.posterior.squared_distances * np.exp(-2.0 * self.theta[0]))
        of_length, of_noise = by_length.trace(), inverse.diagonal() @ noise
        of_noise_squared = noise @ inverse**2 @ noise
        with_noise = noise @ (by_length * inverse).sum(axis=1)
        crossed = 2.0 * (of_noise - of_noise_squared)
        curvature = np.diag(PRIOR_DEVIATION**-2)
        curvature[0, 0] += 0.5 * np.vdot(by_length, by_length.T)
        curvature[0, 1] = curvature[1, 0] = of_length - with_noise
        curvature[0, 2] = curvature[2, 0] = with_noise
        curvature[1, 1] += 2.0 * (count.size - of_noise) - crossed
        curvature[1, 2] = curvature[2, 1] = crossed
        curvature[2, 2] += 2.0 * (of_noise_squared + self.posterior.repeats)
        return curvature


def _newton_step(theta: Floats, gradient: Floats, curvature: Floats, low: Floats, high: Floats) -> Floats:
    """A parameter at its bound that would go beyond it rests."""
    rests = _beyond(theta, -gradient, low, high)
    while True:
        system = np.where(rests | rests[:, None], _IDENTITY, curvature)
        step = np.asarray(np.linalg.solve(system, np.where(rests, 0.0, -gradient)), dtype=float)
        more = _beyond(theta, step, low, high)
        if not more.any():
            return step
        rests = rests | more


def _beyond(theta: Floats, step: Floats, low: Floats, high: Floats) -> NDArray[np.bool_]:
    return ((theta <= low) & (step < 0.0)) | ((theta >= high) & (step > 0.0))


def _updated(curvature: Floats, step: Floats, change: Floats) -> Floats:
    """The BFGS update, damped so that it stays positive definite where the function is not convex."""
    expected = curvature @ step
    seen, foreseen = step @ change, step @ expected
    if seen < DAMPING * foreseen:
        share = (1.0 - DAMPING) * foreseen / (foreseen - seen)
        change = share * change + (1.0 - share) * expected
        seen = step @ change
    return curvature - np.outer(expected, expected) / foreseen + np.outer(change, change) / seen
