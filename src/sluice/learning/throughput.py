"""Throughput functions: what an operator of unlimited capacity emits for what it receives (Dragster eq. 2).

All are concave and increasing in every input. Arguments are arrays of one row per predecessor; a second axis, where
there is one, runs over independent points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError
from scipy.optimize import least_squares, nnls

from sluice.errors import BadInputError
from sluice.learning.gaussian_process import Vector
from sluice.model.base import Frozen, NonNegative, first_problem

Kind = Literal["linear", "minimum", "tanh"]


class ThroughputFunction(Protocol):
    """Value and gradient; as many weights as predecessors."""

    def value(self, received: Vector) -> Vector: ...

    def gradient(self, received: Vector) -> Vector: ...

    def to_data(self) -> dict[str, Any]: ...


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
    """`k1 * tanh(k2 . e)`: any concave function that levels off, where one knows no better."""

    kind: Literal["tanh"] = "tanh"
    k1: NonNegative
    k2: tuple[NonNegative, ...]

    def value(self, received: Vector) -> Vector:
        return self.k1 * np.tanh(np.asarray(self.k2) @ received)

    def gradient(self, received: Vector) -> Vector:
        slope = self.k1 * (1.0 - np.tanh(np.asarray(self.k2) @ received) ** 2)
        return _columns(self.k2, received) * slope


Given = LinearFunction | MinimumFunction | TanhFunction
_given: TypeAdapter[Given] = TypeAdapter(Annotated[Given, Field(discriminator="kind")])


def given_function(data: Mapping[str, Any], what: str) -> Given:
    """From plain data: `{"kind": "linear", "k": [1.5]}`, `{"kind": "tanh", "k1": 9, "k2": [0.1]}`."""
    try:
        return _given.validate_python(data)
    except ValidationError as error:
        raise BadInputError(f"{what}: {first_problem(error)}") from error


def fitted_function(kind: Kind, received: Sequence[Sequence[float]], emitted: Sequence[float]) -> Given:
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
    """Non-negative least squares, held a little towards equal weights: inputs that always grow together cannot be
    told apart otherwise."""
    dimensions = inputs.shape[1]
    equal = float(outputs.sum()) / (float(inputs.sum()) or 1.0)
    hold = 1e-3 * np.eye(dimensions)
    rows, targets = np.vstack([inputs, hold]), np.concatenate([outputs, 1e-3 * np.full(dimensions, equal)])
    weights: Vector = nnls(rows, targets)[0]
    return weights


def _fit_minimum(inputs: Vector, outputs: Vector) -> Vector:
    """The output never exceeds any weighted input and meets the smallest: start at the largest ratio seen, then
    alternate between who was the slowest and least squares over the windows in which it was."""
    safe = np.maximum(inputs, 1e-12)
    weights = np.minimum((outputs[:, None] / safe).max(axis=0), 1e9)
    for _ in range(10):
        slowest = np.argmin(weights * inputs, axis=1)
        for j in set(slowest.tolist()):
            chosen = inputs[slowest == j, j]
            if chosen @ chosen > 0:
                weights[j] = float(chosen @ outputs[slowest == j]) / float(chosen @ chosen)
    result: Vector = weights
    return result


def _fit_tanh(inputs: Vector, outputs: Vector, weights: Vector) -> tuple[float, Vector]:
    """From a curve still nearly straight over what was seen; the search runs over logarithms, so all stays positive."""
    start = np.log(np.concatenate([[2.0], np.maximum(weights, 1e-6) / 2.0]))

    def misses(theta: Vector) -> Vector:
        parameters = np.exp(theta)
        missed: Vector = parameters[0] * np.tanh(inputs @ parameters[1:]) - outputs
        return missed

    found = np.exp(least_squares(misses, start, bounds=(start - 10.0, start + 10.0), max_nfev=100).x)
    return float(found[0]), found[1:]


def _columns(weights: Sequence[float], like: Vector) -> Vector:
    column: Vector = np.asarray(weights, dtype=float).reshape(-1, *[1] * (like.ndim - 1))
    return column
