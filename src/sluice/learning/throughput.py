"""Throughput functions: what an operator of unlimited capacity emits for what it receives (Dragster eq. 2).

All are concave and increasing in every input. Arguments are arrays of one row per predecessor; a second axis, where
there is one, runs over independent points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from sluice.errors import BadInputError
from sluice.learning.gaussian_process import Vector
from sluice.model.base import Frozen, NonNegative, first_problem

Kind = Literal["linear", "minimum", "tanh"]

ROUNDING = 1e-12
MOST_ROUNDS = 10


class LinearFunction(Frozen):
    """`k . e`: so many records out per record in, whatever the input."""

    kind: Literal["linear"] = "linear"
    k: tuple[NonNegative, ...]

    def value(self, received: Vector) -> Vector:
        value: Vector = np.asarray(self.k) @ received
        return value

    def gradient(self, received: Vector) -> Vector:
        return np.broadcast_to(_columns(self.k, received), received.shape)


class MinimumFunction(Frozen):
    """`min(k * e)`: a join that waits for its slower input."""

    kind: Literal["minimum"] = "minimum"
    k: tuple[NonNegative, ...]

    def value(self, received: Vector) -> Vector:
        least: Vector = np.min(_columns(self.k, received) * received, axis=0)
        return least

    def gradient(self, received: Vector) -> Vector:
        weighted = _columns(self.k, received) * received
        slowest = np.arange(len(self.k)).reshape(-1, *[1] * (received.ndim - 1)) == np.argmin(weighted, axis=0)
        return np.where(slowest, _columns(self.k, received), 0.0)


class TanhFunction(Frozen):
    """`k1 * tanh(k2 . e)`: for any concave function that levels off."""

    kind: Literal["tanh"] = "tanh"
    k1: NonNegative
    k2: tuple[NonNegative, ...]

    def value(self, received: Vector) -> Vector:
        return self.k1 * np.tanh(np.asarray(self.k2) @ received)

    def gradient(self, received: Vector) -> Vector:
        slope = self.k1 * (1.0 - np.tanh(np.asarray(self.k2) @ received) ** 2)
        return _columns(self.k2, received) * slope


ThroughputFunction = LinearFunction | MinimumFunction | TanhFunction
_functions: TypeAdapter[ThroughputFunction] = TypeAdapter(Annotated[ThroughputFunction, Field(discriminator="kind")])


def given_function(data: Mapping[str, Any], what: str) -> ThroughputFunction:
    """From plain data: `{"kind": "linear", "k": [1.5]}`, `{"kind": "tanh", "k1": 9, "k2": [0.1]}`."""
    try:
        return _functions.validate_python(data)
    except ValidationError as error:
        raise BadInputError(f"{what}: {first_problem(error)}") from error


def fitted_function(kind: Kind, received: Sequence[Sequence[float]], emitted: Sequence[float]) -> ThroughputFunction:
    """The function of this kind nearest to what was seen: one row of inputs and one output per window."""
    inputs, outputs = np.asarray(received, dtype=float), np.asarray(emitted, dtype=float)
    unit_in, unit_out = float(inputs.max()) or 1.0, float(outputs.max()) or 1.0
    inputs, outputs = inputs / unit_in, outputs / unit_out
    if kind == "minimum":
        return MinimumFunction(k=tuple(_fit_minimum(inputs, outputs) * unit_out / unit_in))
    weights = _fit_linear(inputs, outputs)
    if kind == "linear":
        return LinearFunction(k=tuple(weights * unit_out / unit_in))
    height, slopes = _fit_tanh(inputs, outputs, weights)
    return TanhFunction(k1=height * unit_out, k2=tuple(slopes / unit_in))


def _fit_linear(inputs: Vector, outputs: Vector) -> Vector:
    """Non-negative least squares with a slight pull towards equal weights, which decides between inputs that always
    grow together."""
    dimensions = inputs.shape[1]
    equal = float(outputs.sum()) / (float(inputs.sum()) or 1.0)
    hold = 1e-3 * np.eye(dimensions)
    rows, targets = np.vstack([inputs, hold]), np.concatenate([outputs, 1e-3 * np.full(dimensions, equal)])
    return nonnegative_least_squares(rows, targets)


def _fit_minimum(inputs: Vector, outputs: Vector) -> Vector:
    """The output never exceeds any weighted input and meets the smallest: start at the largest ratio seen, then
    alternate between who was the slowest and least squares over the windows in which it was."""
    safe = np.maximum(inputs, 1e-12)
    weights = np.minimum((outputs[:, None] / safe).max(axis=0), 1e9)
    for _ in range(MOST_ROUNDS):
        slowest = np.argmin(weights * inputs, axis=1)
        for j in set(slowest.tolist()):
            chosen = inputs[slowest == j, j]
            if chosen @ chosen > 0:
                weights[j] = float(chosen @ outputs[slowest == j]) / float(chosen @ chosen)
    result: Vector = weights
    return result


def nonnegative_least_squares(rows: Vector, targets: Vector) -> Vector:
    """`argmin |rows @ w - targets|` over `w >= 0`, for rows of full rank (Lawson and Hanson's active-set method)."""
    weights = np.zeros(rows.shape[1])
    is_free = np.zeros(rows.shape[1], dtype=bool)
    negligible = ROUNDING * float(np.abs(rows.T @ targets).max(initial=0.0))
    for _ in range(MOST_ROUNDS * len(weights)):
        pull = np.where(is_free, -np.inf, rows.T @ (targets - rows @ weights))
        if pull.max() <= negligible:
            break
        is_free[np.argmax(pull)] = True
        while True:
            solved = np.zeros_like(weights)
            solved[is_free] = np.linalg.lstsq(rows[:, is_free], targets, rcond=None)[0]
            blocking = is_free & (solved <= 0)
            if not blocking.any():
                break
            # go as far as no weight becomes negative; the first to reach 0 is fixed there
            share = np.min(weights[blocking] / (weights[blocking] - solved[blocking]))
            weights = weights + share * (solved - weights)
            is_free &= weights > ROUNDING * weights.max()
        weights = solved
    return weights


def _fit_tanh(inputs: Vector, outputs: Vector, weights: Vector) -> tuple[float, Vector]:
    """Levenberg and Marquardt's search from a curve still nearly straight over what was seen.

    It runs over logarithms, so all parameters stay positive, and not further than `e^10` from the start.
    """
    start = np.log(np.concatenate([[2.0], np.maximum(weights, 1e-6) / 2.0]))

    def misses(theta: Vector) -> tuple[Vector, Vector]:
        """With their derivatives by theta, one row per window."""
        height, slopes = np.exp(theta[0]), np.exp(theta[1:])
        bent = np.tanh(inputs @ slopes)
        by_slopes = height * (1.0 - bent**2)[:, None] * inputs * slopes
        return height * bent - outputs, np.column_stack([height * bent, by_slopes])

    theta, damping = start, 1e-3
    missed, slope = misses(theta)
    for _ in range(MOST_ROUNDS * 10):
        curvature = slope.T @ slope
        damped = curvature + damping * np.diag(curvature.diagonal() + 1e-6)
        there = np.clip(theta - np.linalg.solve(damped, slope.T @ missed), start - 10.0, start + 10.0)
        new_missed, new_slope = misses(there)
        gained = float(missed @ missed - new_missed @ new_missed)
        if gained > 0:
            theta, missed, slope, damping = there, new_missed, new_slope, max(damping / 3.0, 1e-6)
        else:
            damping *= 4.0
        if abs(gained) <= 1e-8 * float(missed @ missed) or damping > 1e9:
            break
    fitted = np.exp(theta)
    return float(fitted[0]), fitted[1:]


def _columns(weights: Sequence[float], like: Vector) -> Vector:
    column: Vector = np.asarray(weights, dtype=float).reshape(-1, *[1] * (like.ndim - 1))
    return column
