"""A job as Dragster sees it (sections 4 and 5): flows limited by capacities, and the Lagrangian over them.

    e_ij = min(split_ij * y_i, h_ij(e_i))            flow on an edge, y_i the capacity of operator i (records/s emitted)
    f(y) = flow out of the sinks
    l_i(y) = sum_j h_ij(e_i) - y_i                   what operator i should emit beyond its capacity
    L(y, dual) = f(y) - sum_i dual_i * l_i(y)

Sources read their topic at the arrival rate; each sink has one more edge, out of the job. Operators are numbered in
topological order; capacities are arrays of one row per operator, and a second axis runs over independent points.

Throughput functions are given, or fitted to what the edges carried in the newest windows (section 4.1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sluice.dataflow.numbers import LARGEST
from sluice.dataflow.rates import EdgeValues, consumed_rate, edge_rates, source_loads
from sluice.errors import BadInputError
from sluice.learning.gaussian_process import Vector
from sluice.learning.throughput import Kind, LinearFunction, ThroughputFunction, fitted_function, given_function
from sluice.model import Observation, Topology
from sluice.protocol import Memory

OUT = ""
"""The far end of a sink's edge."""

MOST_FLOW = 1e15
"""Odd selectivities along a long graph multiply up; beyond this they mean nothing."""
WINDOWS_KEPT = 40
LEAST_SPLIT = 1e-6
LEAST_RATE = 1e-6
MOST_OUT = 1e6
"""Records out per record in: a window that shows more says nothing about the operator."""

Edge = tuple[str, str]


@dataclass(frozen=True)
class Flows:
    """What passes with capacities `y`."""

    edges: dict[Edge, Vector]
    received: tuple[Vector, ...]
    demand: Vector
    out: Vector


@dataclass(frozen=True)
class FlowModel:
    """One slot's throughput function: shape, throughput functions, capacity splits, and what arrives."""

    topology: Topology
    functions: Mapping[Edge, ThroughputFunction]
    splits: Mapping[Edge, float]
    arrivals: Mapping[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        return self.topology.order

    def targets(self, name: str) -> tuple[str, ...]:
        return self.topology.successors[name] or (OUT,)

    def flows(self, y: Vector) -> Flows:
        edges: dict[Edge, Vector] = {}
        received: list[Vector] = []
        demand = np.zeros_like(y)
        out = np.zeros(y.shape[1:])
        for i, name in enumerate(self.names):
            received.append(self._received(name, edges, y.shape[1:]))
            for target in self.targets(name):
                unlimited = np.minimum(self.functions[name, target].value(received[i]), MOST_FLOW)
                demand[i] += unlimited
                flow = np.minimum(self.splits[name, target] * y[i], unlimited)
                edges[name, target] = flow
                if target == OUT:
                    out = out + flow
        return Flows(edges, tuple(received), demand, out)

    def _received(self, name: str, edges: Mapping[Edge, Vector], shape: tuple[int, ...]) -> Vector:
        if self.topology.is_source(name):
            return np.full((1, *shape), self.arrivals[name])
        return np.stack([edges[before, name] for before in self.topology.predecessors[name]])

    def demands(self) -> Vector:
        """What every operator would have to emit if none were too small."""
        return self.flows(np.full(len(self.names), np.inf)).demand

    def lagrangian(self, y: Vector, dual: Vector) -> Vector:
        flows = self.flows(y)
        excess = flows.demand - y
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
                unlimited = float(function.value(flows.received[i]))
                by_unlimited = -float(dual[i])
                if unlimited <= split * y[i]:
                    by_unlimited += by_flow
                else:
                    slope[i] += split * by_flow
                by_input += by_unlimited * function.gradient(flows.received[i])
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

    def scaled(self, share: float) -> FlowModel:
        """The same job when only this share of the load arrives."""
        return replace(self, arrivals={name: rate * share for name, rate in self.arrivals.items()})

    def sufficient(self) -> Vector:
        """Smallest capacities at which nothing is held back: with a given split, the edge that needs most decides."""
        free = self.flows(np.full(len(self.names), np.inf))
        return np.array(
            [
                max(float(free.edges[name, target]) / self.splits[name, target] for target in self.targets(name))
                for name in self.names
            ]
        )


def parse_functions(text: str) -> dict[Edge, ThroughputFunction]:
    """From `{"map>count": {"kind": "linear", "k": [8]}}`; nothing for an empty text."""
    if not text:
        return {}
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadInputError(f"functions must be JSON, got {text!r}: {error}") from error
    if not isinstance(data, dict) or not all(isinstance(entry, dict) and ">" in edge for edge, entry in data.items()):
        raise BadInputError(f"functions must map 'from>to' to a function, got {text!r}")
    functions = {}
    for edge, function in data.items():
        source, _, target = edge.partition(">")
        functions[source, target] = given_function(function, f"function of {edge}")
    return functions


def recorded_windows(observation: Observation, memory: Memory) -> dict[str, Any]:
    """What the edges carried in the newest windows, this one included: edge -> inputs of its operator, output."""
    topology = observation.topology
    rates = edge_rates(observation)
    windows: dict[str, Any] = dict(memory.get("windows", {}))
    for name in topology.order:
        received = _received(name, observation, rates)
        if received is None or sum(received) < LEAST_RATE:
            continue
        for target in topology.successors[name]:
            emitted = rates[name].get(target)
            if emitted is not None and max(*received, emitted) <= LARGEST and emitted <= MOST_OUT * sum(received):
                key = f"{name}>{target}"
                windows[key] = [*windows.get(key, []), [received, emitted]][-WINDOWS_KEPT:]
    return windows


def _received(name: str, observation: Observation, rates: EdgeValues) -> list[float] | None:
    """Records/s consumed, per predecessor; a source has its topic as the only one."""
    predecessors = observation.topology.predecessors[name]
    consumed = consumed_rate(observation.operators[name])
    if not predecessors:
        return None if consumed is None else [consumed]
    sent = [rates[before].get(name) for before in predecessors]
    known = [rate for rate in sent if rate is not None]
    if len(known) < len(sent):
        return None
    total = sum(known)
    # records queued in between were sent, but not consumed
    scale = consumed / total if consumed is not None and total > 0 else 1.0
    return [rate * min(scale, 1.0) for rate in known]


def fitted_flow_model(
    observation: Observation, windows: Mapping[str, Any], kind: Kind, given: Mapping[Edge, ThroughputFunction]
) -> FlowModel | None:
    """Null while the load is unknown. An edge without windows is taken to pass on what it receives."""
    loads = source_loads(observation)
    if loads is None:
        return None
    topology = observation.topology
    functions: dict[Edge, ThroughputFunction] = {}
    splits: dict[Edge, float] = {}
    for name in topology.order:
        inputs = len(topology.predecessors[name]) or 1
        emitted = {target: _last_emitted(windows.get(f"{name}>{target}")) for target in topology.successors[name]}
        total = sum(emitted.values())
        for target in topology.successors[name] or (OUT,):
            functions[name, target] = _function(name, target, inputs, windows, kind, given)
            share = emitted[target] / total if total > 0 else 1.0 / max(1, len(emitted))
            splits[name, target] = max(share, LEAST_SPLIT)
    return FlowModel(topology, functions, splits, loads)


def _function(
    name: str,
    target: str,
    inputs: int,
    windows: Mapping[str, Any],
    kind: Kind,
    given: Mapping[Edge, ThroughputFunction],
) -> ThroughputFunction:
    if (name, target) in given:
        return given[name, target]
    seen = windows.get(f"{name}>{target}")
    usable = [window for window in seen or [] if len(window[0]) == inputs]
    if not usable:
        return LinearFunction(k=(1.0,) * inputs)
    return fitted_function(kind, [received for received, _ in usable], [emitted for _, emitted in usable])


def _last_emitted(windows: list[Any] | None) -> float:
    return float(windows[-1][1]) if windows else 0.0
