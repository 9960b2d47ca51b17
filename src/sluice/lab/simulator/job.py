"""What is simulated: the operators with their costs, and how the engine around them behaves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from sluice.lab.simulator.capacity import Capacity
from sluice.learning.instance_sizes import EXAMPLE
from sluice.model import Cluster, Edge, Graph, InstanceSize, Operator

RateCurve = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
"""Times in s -> arrival rates in records/s."""

MICRO = 1_000_000
"""Selectivities are kept in millionths, so that records can be counted exactly in integers."""


@dataclass(frozen=True, kw_only=True)
class SimulatedOperator:
    """Costs of one operator.

    `selectivity` is records out per record in. With `window_s` the output is held back and leaves in a burst when a
    window ends. State grows by `state_bytes_per_record` and, with `state_ttl_s`, is forgotten exponentially at that
    time constant. `cpu_per_record` is in core-seconds (null: what makes a single instance at its capacity fill its core
    up to the ceiling), `io_` and `net_bytes_per_record` in bytes; they matter on workers of limited capacity.
    `speedup` maps an instance size to its speed relative to an instance of one core,
    by default its cores.
    """

    name: str
    capacity: Capacity
    selectivity: float = 1.0
    window_s: float | None = None
    state_bytes_per_record: float = 0.0
    state_ttl_s: float | None = None
    cpu_per_record: float | None = None
    io_bytes_per_record: float = 0.0
    net_bytes_per_record: float = 0.0
    speedup: Callable[[InstanceSize], float] | None = None

    def __post_init__(self) -> None:
        for name in (
            "selectivity",
            "state_bytes_per_record",
            "cpu_per_record",
            "io_bytes_per_record",
            "net_bytes_per_record",
        ):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"operator {self.name!r}: {name} must not be negative, got {value}")
        for name in ("window_s", "state_ttl_s"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"operator {self.name!r}: {name} must be above 0, got {value}")


@dataclass(frozen=True, kw_only=True)
class SimulatorSettings:
    """How the simulated engine behaves.

    `buffer_records` bounds the records waiting on an edge per consuming instance (Flink-like backpressure); null
    means edges are topics without a bound (Spark- or Kafka-like). `rescale` stops the whole job or only the
    operators that change; they stand still for `downtime_s + state / state_bandwidth`; instances added by a rescale
    join `instance_start_s` later. `cpu_ceiling` is the CPU share a saturated instance shows, `busy_ceiling` the busy
    share it shows: below 1, because the engine slows the intake before an instance is busy all the time (thesis 8.3),
    and so everyone who computes a true rate from it overestimates. `noise` is the standard deviation of the
    logarithm of an operator's speed from tick to tick.

    With `retention_s` the source topics forget: records are deleted unread, and counted as lost, in segments of
    `segment_s` once the youngest of a segment is that old. The thesis' topics forgot after five minutes (6.3.1).
    """

    tick_s: float = 1.0
    buffer_records: int | None = 5000
    rescale: Literal["job", "operators"] = "operators"
    downtime_s: float = 0.0
    state_bandwidth_bytes_per_s: float = 100e6
    instance_start_s: float = 0.0
    cpu_ceiling: float = 0.9
    busy_ceiling: float = 1.0
    noise: float = 0.0
    retention_s: float | None = None
    segment_s: float = 300.0
    sizes: tuple[InstanceSize, ...] = EXAMPLE
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        for name in ("tick_s", "state_bandwidth_bytes_per_s", "retention_s", "segment_s"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be above 0, got {value}")
        for name in ("downtime_s", "instance_start_s", "noise"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must not be negative, got {value}")
        for name in ("cpu_ceiling", "busy_ceiling"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise ValueError(f"{name} must be in (0, 1], got {value}")
        if self.buffer_records is not None and self.buffer_records < 1:
            raise ValueError(f"buffer_records must be at least 1, got {self.buffer_records}")


@dataclass(frozen=True, kw_only=True)
class SimulatedJob:
    """A job the simulator can run: operators with costs, edges, settings, and where to start."""

    operators: tuple[SimulatedOperator, ...]
    edges: tuple[Edge, ...]
    settings: SimulatorSettings = field(default_factory=SimulatorSettings)
    initial_parallelism: Mapping[str, int] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        return Graph(
            operators=tuple(
                Operator(name=op.name, stateful=op.state_bytes_per_record > 0 or op.window_s is not None)
                for op in self.operators
            ),
            edges=self.edges,
        )


def chain(*names: str) -> tuple[Edge, ...]:
    """Edges of a straight line of operators."""
    return tuple(Edge(source=a, target=b) for a, b in itertools.pairwise(names))
