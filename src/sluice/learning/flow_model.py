"""A job as Dragster sees it (sections 4 and 5): flows limited by capacities, and the Lagrangian over them.

    e_ij = min(split_ij * y_i, h_ij(e_i))            flow on an edge, y_i the capacity of operator i (records/s emitted)
    f(y) = flow out of the sinks
    l_i(y) = sum_j h_ij(e_i) - y_i                   what operator i is asked for beyond what it can
    L(y, dual) = f(y) - sum_i dual_i * l_i(y)

Sources read their topic at the arrival rate; each sink has one more edge, out of the job. Operators are numbered in
topological order; capacities are arrays of one row per operator, and a second axis runs over independent points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sluice.learning.gaussian_process import Vector
from sluice.learning.throughput import ThroughputFunction
from sluice.model import Topology

OUT = ""
"""The far end of a sink's edge."""

MOST_FLOW = 1e15
"""Odd selectivities along a long graph multiply up; beyond this they mean nothing."""


@dataclass(frozen=True)
class Flows:
    """What `y` lets through."""

    edges: dict[tuple[str, str], Vector]
    received: tuple[Vector, ...]
    asked: Vector
    out: Vector


@dataclass(frozen=True)
class Dataflow:
    """One slot's throughput function: shape, throughput functions, capacity splits, and what arrives."""

    topology: Topology
    functions: Mapping[tuple[str, str], ThroughputFunction]
    splits: Mapping[tuple[str, str], float]
    arrivals: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        return self.topology.order

    def targets(self, name: str) -> tuple[str, ...]:
        return self.topology.successors[name] or (OUT,)

    def flows(self, y: Vector) -> Flows:
        edges: dict[tuple[str, str], Vector] = {}
        received: list[Vector] = []
        asked = np.zeros_like(y)
        out = np.zeros(y.shape[1:])
        for i, name in enumerate(self.names):
            received.append(self._received(name, edges, y.shape[1:]))
            for target in self.targets(name):
                wanted = np.minimum(self.functions[name, target].value(received[i]), MOST_FLOW)
                asked[i] += wanted
                flow = np.minimum(self.splits[name, target] * y[i], wanted)
                edges[name, target] = flow
                if target == OUT:
                    out = out + flow
        return Flows(edges, tuple(received), asked, out)

    def _received(self, name: str, edges: Mapping[tuple[str, str], Vector], shape: tuple[int, ...]) -> Vector:
        if self.topology.is_source(name):
            return np.full((1, *shape), self.arrivals[name])
        return np.stack([edges[before, name] for before in self.topology.predecessors[name]])

    def demands(self) -> Vector:
        """What every operator would be asked for if none were too small."""
        return self.flows(np.full(len(self.names), np.inf)).asked

    def lagrangian(self, y: Vector, dual: Vector) -> Vector:
        flows = self.flows(y)
        excess = flows.asked - y
        value: Vector = flows.out - np.tensordot(dual, excess, axes=1)
        return value

    def gradient(self, y: Vector, dual: Vector) -> Vector:
        """Of the Lagrangian by the capacities, one point: the chain rule backwards along the edges.

        At a kink, where an operator is just large enough, it is the slope towards more capacity.
        """
        flows = self.flows(y)
        by_edge = dict.fromkeys(flows.edges, 0.0)
        slope = np.array(dual, dtype=float)
        for i in reversed(range(len(self.names))):
            name = self.names[i]
            by_input = np.zeros(len(flows.received[i]))
            for target in self.targets(name):
                function, split = self.functions[name, target], self.splits[name, target]
                by_flow = 1.0 if target == OUT else by_edge[name, target]
                wanted = float(function.value(flows.received[i]))
                by_wanted = -float(dual[i])
                if wanted <= split * y[i]:
                    by_wanted += by_flow
                else:
                    slope[i] += split * by_flow
                by_input += by_wanted * function.gradient(flows.received[i])
            for before, value in zip(self.topology.predecessors[name], by_input, strict=False):
                by_edge[before, name] = float(value)
        return slope

    def best_capacities(self, dual: Vector, most: Vector) -> Vector:
        """`argmax_y L(y, dual)` in the box `0 <= y <= most`, over capacities that hold nothing back; the least of them.

        There the flows do not change, and L grows by `dual_i` per unit of `y_i`: the best is the face of the box for
        operators with a price and just enough for the others. (With prices above what a record is worth L would also
        grow by starving an operator, to spare those after it their price: no answer to a shortage.)
        """
        return np.where(dual > 0, most, np.minimum(self.sufficient(), most))

    def scaled(self, share: float) -> Dataflow:
        """The same job when only this share of the load arrives."""
        return replace(self, arrivals={name: rate * share for name, rate in self.arrivals.items()})

    def sufficient(self) -> Vector:
        """Smallest capacities at which nothing is held back: with a given split, the hungriest edge decides."""
        free = self.flows(np.full(len(self.names), np.inf))
        return np.array(
            [
                max(float(free.edges[name, target]) / self.splits[name, target] for target in self.targets(name))
                for name in self.names
            ]
        )
