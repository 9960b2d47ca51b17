"""How many records/s an operator can take with p instances."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sluice.errors import BadInputError

Capacity = Callable[[int], float]
"""Instances -> records/s. Any function will do; the classes here are the usual ones."""


@dataclass(frozen=True)
class Linear:
    """Every instance adds the same."""

    per_instance: float

    def __post_init__(self) -> None:
        _check_positive("per_instance", self.per_instance)

    def __call__(self, instances: int) -> float:
        return self.per_instance * instances


@dataclass(frozen=True)
class PowerLaw:
    """Coordination eats into every further instance: `per_instance * p ** exponent`."""

    per_instance: float
    exponent: float

    def __post_init__(self) -> None:
        _check_positive("per_instance", self.per_instance)
        if not 0 < self.exponent <= 1.5:
            raise ValueError(f"exponent must be in (0, 1.5], got {self.exponent}")

    def __call__(self, instances: int) -> float:
        return float(self.per_instance * instances**self.exponent)


@dataclass(frozen=True)
class CapacityTable:
    """Measured points, straight lines between them; beyond the last point its rate per instance goes on."""

    points: Mapping[int, float]

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a capacity table needs at least one point, got none")
        for instances, rate in self.points.items():
            if instances < 1:
                raise ValueError(f"a capacity table starts at 1 instance, got {instances}")
            _check_positive(f"rate at {instances}", rate)

    def __call__(self, instances: int) -> float:
        known = sorted(self.points)
        if instances > known[-1]:
            return self.points[known[-1]] * instances / known[-1]
        return float(np.interp(instances, [0, *known], [0.0, *(self.points[p] for p in known)]))


def _check_positive(what: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{what} must be above 0, got {value}")


def read_curve(path: str) -> CapacityTable:
    """A measured curve from a file with `{"capacity": {"1": records/s, ...}}`."""
    try:
        points = json.loads(Path(path).read_text())["capacity"]
        return CapacityTable({int(instances): float(rate) for instances, rate in points.items()})
    except OSError as error:
        raise BadInputError(f"cannot read curve {path!r}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInputError(
            f"curve {path!r} must be JSON with 'capacity': {{instances: records/s}}: {error}"
        ) from error
