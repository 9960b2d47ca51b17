"""The job's throughput functions and capacity splits, given or fitted window by window (Dragster 4.1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sluice.dataflow.numbers import LARGEST
from sluice.dataflow.rates import EdgeValues, consumed_rate, edge_rates, source_loads
from sluice.errors import BadInputError
from sluice.learning.flow_model import OUT, Dataflow
from sluice.learning.throughput import Given, Kind, LinearFunction, fitted_function, given_function
from sluice.model import Observation
from sluice.policy import Memory

WINDOWS_KEPT = 40
LEAST_SPLIT = 1e-6
LEAST_RATE = 1e-6
MOST_OUT = 1e6
"""Records out per record in: a window that shows more says nothing about the operator."""


def parse_functions(text: str) -> dict[tuple[str, str], Given]:
    """From `{"map>count": {"kind": "linear", "k": [8]}}`; nothing for an empty text."""
    if not text:
        return {}
    try:
        data = json.loads(text)
    except ValueError as error:
        raise BadInputError(f"functions must be JSON, got {text!r}: {error}") from error
    if not isinstance(data, dict) or not all(isinstance(found, dict) and ">" in edge for edge, found in data.items()):
        raise BadInputError(f"functions must map 'from>to' to a function, got {text!r}")
    found = {}
    for edge, function in data.items():
        source, _, target = edge.partition(">")
        found[source, target] = given_function(function, f"function of {edge}")
    return found


def watch(observation: Observation, memory: Memory) -> dict[str, Any]:
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
    """Records/s taken in, per predecessor; a source has its topic as the only one."""
    predecessors = observation.topology.predecessors[name]
    consumed = consumed_rate(observation.operators[name])
    if not predecessors:
        return None if consumed is None else [consumed]
    came = [rates[before].get(name) for before in predecessors]
    known = [rate for rate in came if rate is not None]
    if len(known) < len(came):
        return None
    total = sum(known)
    # what is queued up in between was sent, but not taken in
    scale = consumed / total if consumed is not None and total > 0 else 1.0
    return [rate * min(scale, 1.0) for rate in known]


def dataflow(
    observation: Observation, windows: Mapping[str, Any], kind: Kind, given: Mapping[tuple[str, str], Given]
) -> Dataflow | None:
    """Null while the load is unknown. An edge of which nothing was seen is taken to pass on what comes."""
    loads = source_loads(observation)
    if loads is None:
        return None
    topology = observation.topology
    functions: dict[tuple[str, str], Given] = {}
    splits: dict[tuple[str, str], float] = {}
    for name in topology.order:
        inputs = len(topology.predecessors[name]) or 1
        emitted = {target: _last_emitted(windows.get(f"{name}>{target}")) for target in topology.successors[name]}
        total = sum(emitted.values())
        for target in topology.successors[name] or (OUT,):
            functions[name, target] = _function(name, target, inputs, windows, kind, given)
            share = emitted[target] / total if total > 0 else 1.0 / max(1, len(emitted))
            splits[name, target] = max(share, LEAST_SPLIT)
    return Dataflow(topology, functions, splits, loads)


def _function(
    name: str,
    target: str,
    inputs: int,
    windows: Mapping[str, Any],
    kind: Kind,
    given: Mapping[tuple[str, str], Given],
) -> Given:
    if (name, target) in given:
        return given[name, target]
    seen = windows.get(f"{name}>{target}")
    usable = [window for window in seen or [] if len(window[0]) == inputs]
    if not usable:
        return LinearFunction(k=(1.0,) * inputs)
    return fitted_function(kind, [received for received, _ in usable], [emitted for _, emitted in usable])


def _last_emitted(windows: list[Any] | None) -> float:
    return float(windows[-1][1]) if windows else 0.0
