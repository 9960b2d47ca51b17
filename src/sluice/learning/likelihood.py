"""How likely hyper-parameters are, and the climb to the most likely ones; compiled, for a decision fits many processes.

The climb is BFGS with Powell's damping inside bounds. It begins with the expected curvature

    F_ij = tr(C^-1 dC/dtheta_i C^-1 dC/dtheta_j) / 2 + that of the prior

which is positive definite everywhere, and returns to it when a step leads nowhere.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PRIOR_DEVIATION = np.array([1.0, 0.7, 1.0])
"""Of the logarithms of length scale, amplitude and noise."""
MOST_STEPS = 30
MOST_HALVINGS = 12
NEAR_ENOUGH = 1e-6
"""A step that promises less than this share of the value ends the climb."""
ENOUGH_DESCENT = 1e-4
DAMPING = 0.2


@njit(cache=True)  # type: ignore[untyped-decorator]
def covariance(theta: Floats, x: Floats, count: Floats) -> tuple[Floats, Floats]:
    """The kernel matrix, and the same with the noise of each mean on its diagonal."""
    steepness = 0.5 * np.exp(-2.0 * theta[0])
    height, noise_variance = np.exp(2.0 * theta[1]), np.exp(2.0 * theta[2])
    kernel = np.empty((x.size, x.size))
    for i in range(x.size):
        for j in range(i + 1):
            kernel[i, j] = kernel[j, i] = height * np.exp(-steepness * (x[i] - x[j]) ** 2)
    noisy = kernel.copy()
    for i in range(x.size):
        noisy[i, i] += noise_variance / count[i]
    return kernel, noisy


@njit(cache=True)  # type: ignore[untyped-decorator]
def negative_log_posterior(
    theta: Floats, x: Floats, y: Floats, count: Floats, scatter: float, centre: Floats
) -> tuple[float, Floats]:
    """Minus log marginal likelihood of all samples minus log prior, up to a constant, with its gradient.

    `theta` holds the logarithms of length scale, amplitude and noise, `centre` where their prior is centred. `y` are
    means of `count` samples at each `x`, and `scatter` the sum of squares of all samples around them.
    """
    kernel, noisy = covariance(theta, x, count)
    factor = np.linalg.cholesky(noisy)
    inverse = np.linalg.inv(noisy)
    weights = inverse @ y
    noise_variance, shrink = np.exp(2.0 * theta[2]), np.exp(-2.0 * theta[0])
    repeats = count.sum() - count.size
    value = 0.5 * (y @ weights) + repeats * theta[2] + 0.5 * scatter / noise_variance
    gradient = np.zeros(3)
    for i in range(x.size):
        value += np.log(factor[i, i])
        gradient[2] -= (weights[i] ** 2 - inverse[i, i]) * noise_variance / count[i]
        for j in range(x.size):
            slope = (weights[i] * weights[j] - inverse[i, j]) * kernel[i, j]
            gradient[0] -= 0.5 * slope * (x[i] - x[j]) ** 2 * shrink
            gradient[1] -= slope
    gradient[2] += repeats - scatter / noise_variance
    away = (theta - centre) / PRIOR_DEVIATION
    return value + 0.5 * (away @ away), gradient + away / PRIOR_DEVIATION


@njit(cache=True)  # type: ignore[untyped-decorator]
def information(theta: Floats, x: Floats, count: Floats) -> Floats:
    """The curvature expected of `negative_log_posterior` if samples really came from such a process."""
    kernel, noisy = covariance(theta, x, count)
    inverse = np.linalg.inv(noisy)
    noise = np.exp(2.0 * theta[2]) / count
    bent = np.empty_like(kernel)
    for i in range(x.size):
        for j in range(x.size):
            bent[i, j] = kernel[i, j] * (x[i] - x[j]) ** 2 * np.exp(-2.0 * theta[0])
    # with B = C^-1 N and N the noise, C^-1 times the derivatives is `by_length`, 2 (1 - B) and 2 B
    by_length = inverse @ bent
    of_length, of_noise, of_noise_squared, crossed, of_length_squared = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(x.size):
        of_length += by_length[i, i]
        of_noise += inverse[i, i] * noise[i]
        for j in range(x.size):
            of_noise_squared += inverse[i, j] ** 2 * noise[i] * noise[j]
            crossed += by_length[i, j] * inverse[j, i] * noise[i]
            of_length_squared += by_length[i, j] * by_length[j, i]
    found = np.diag(PRIOR_DEVIATION**-2)
    found[0, 0] += 0.5 * of_length_squared
    found[0, 1] = found[1, 0] = of_length - crossed
    found[0, 2] = found[2, 0] = crossed
    found[1, 1] += 2.0 * (x.size - 2.0 * of_noise + of_noise_squared)
    found[1, 2] = found[2, 1] = 2.0 * (of_noise - of_noise_squared)
    found[2, 2] += 2.0 * (of_noise_squared + count.sum() - count.size)
    return found


@njit(cache=True)  # type: ignore[untyped-decorator]
def most_likely(
    starts: Floats, low: Floats, high: Floats, x: Floats, y: Floats, count: Floats, scatter: float, centre: Floats
) -> Floats:
    """The best of the starts, one per row, and from there to the most likely inside the bounds."""
    theta = starts[0]
    value, gradient = negative_log_posterior(theta, x, y, count, scatter, centre)
    for start in starts[1:]:
        other_value, other_gradient = negative_log_posterior(start, x, y, count, scatter, centre)
        if other_value < value:
            theta, value, gradient = start, other_value, other_gradient
    curvature = information(theta, x, count)
    fresh = True
    for _ in range(MOST_STEPS):
        step = _step(theta, gradient, curvature, low, high)
        descended = False
        for halving in range(MOST_HALVINGS):
            there = np.minimum(np.maximum(theta + step * 0.5**halving, low), high)
            promised = gradient @ (theta - there)
            if promised <= NEAR_ENOUGH * (1.0 + abs(value)) * 0.5**halving:
                break
            new_value, new_gradient = negative_log_posterior(there, x, y, count, scatter, centre)
            if new_value <= value - ENOUGH_DESCENT * promised:
                descended = True
                break
        if descended:
            curvature = _learned(curvature, there - theta, new_gradient - gradient)
            theta, value, gradient = there, new_value, new_gradient
        elif fresh:
            break
        else:
            curvature = information(theta, x, count)
        fresh = not descended
    return theta  # type: ignore[no-any-return]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _step(theta: Floats, gradient: Floats, curvature: Floats, low: Floats, high: Floats) -> Floats:
    """Newton's step; a parameter at its bound that would go beyond it rests."""
    rests = _beyond(theta, -gradient, low, high)
    while True:
        system, target = curvature.copy(), -gradient
        for i in range(3):
            if rests[i]:
                system[i, :] = 0.0
                system[:, i] = 0.0
                system[i, i] = 1.0
                target[i] = 0.0
        step = np.linalg.solve(system, target)
        more = _beyond(theta, step, low, high)
        if not more.any():
            return step  # type: ignore[return-value]
        rests = rests | more


@njit(cache=True)  # type: ignore[untyped-decorator]
def _beyond(theta: Floats, step: Floats, low: Floats, high: Floats) -> NDArray[np.bool_]:
    return ((theta <= low) & (step < 0.0)) | ((theta >= high) & (step > 0.0))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _learned(curvature: Floats, step: Floats, change: Floats) -> Floats:
    """The BFGS update, damped so that it stays positive definite where the function is not convex."""
    expected = curvature @ step
    seen, foreseen = step @ change, step @ expected
    if seen < DAMPING * foreseen:
        share = (1.0 - DAMPING) * foreseen / (foreseen - seen)
        change = share * change + (1.0 - share) * expected
        seen = step @ change
    return curvature - np.outer(expected, expected) / foreseen + np.outer(change, change) / seen
