"""How records flow: what arrives at an operator, what takes which edge, what an operator makes of its input.

Everything here may be unknown (null), and nothing unknown is taken for 0.
"""

from __future__ import annotations

from sluice.dataflow.numbers import known_sum, ratio
from sluice.model import Observation, OperatorMetrics, Topology

EdgeValues = dict[str, dict[str, float]]
"""Operator -> successor -> value; an edge of which nothing is known is left out."""


def consumed_rate(metrics: OperatorMetrics) -> float | None:
    """Records/s taken in: measured, else what the true rate and the busy share imply."""
    if metrics.input_rate is not None:
        return metrics.input_rate
    if metrics.true_input_rate is not None and metrics.busy is not None:
        return metrics.true_input_rate * metrics.busy
    return None


def emitted_rate(metrics: OperatorMetrics) -> float | None:
    """Records/s put out on all edges together: measured, else implied as for `consumed_rate`."""
    if metrics.output_rate is not None:
        return metrics.output_rate
    if metrics.output_rates is not None:
        return sum(metrics.output_rates.values())
    if metrics.true_output_rate is not None and metrics.busy is not None:
        return metrics.true_output_rate * metrics.busy
    return None


def arriving_rate(metrics: OperatorMetrics) -> float | None:
    """Records/s that reach its inputs: consumed, and what its queue grew by (nothing, where no queue is reported)."""
    consumed = consumed_rate(metrics)
    return None if consumed is None else max(0.0, consumed + (metrics.lag_rate or 0.0))


def source_arrival_rate(metrics: OperatorMetrics) -> float | None:
    """Records/s written to the topic a source reads; else read and piled up together, where both are known."""
    if metrics.arrival_rate is not None:
        return metrics.arrival_rate
    return None if metrics.lag_rate is None else arriving_rate(metrics)


def edge_rates(observation: Observation) -> EdgeValues:
    """Records/s on every edge.

    As the engine reports it; else the whole output where there is one successor; else, for a fan-out, what
    arrives at the successor less what its other predecessors are known to send there. Of several predecessors
    that all fan out, each gets a part in proportion to its output.
    """
    topology = observation.topology
    certain: EdgeValues = {name: _certain_rates(name, observation, topology) for name in topology.order}
    found = {name: dict(rates) for name, rates in certain.items()}
    for successor in topology.order:
        feeding = topology.predecessors[successor]
        uncertain = [name for name in feeding if successor not in certain[name]]
        if uncertain and (arriving := arriving_rate(observation.operators[successor])) is not None:
            rest = max(0.0, arriving - sum(certain[name].get(successor, 0.0) for name in feeding))
            for name, rate in _divided(rest, uncertain, observation).items():
                found[name][successor] = rate
    return found


def _certain_rates(name: str, observation: Observation, topology: Topology) -> dict[str, float]:
    metrics = observation.operators[name]
    successors = topology.successors[name]
    reported = {to: rate for to, rate in (metrics.output_rates or {}).items() if to in successors}
    if len(successors) == 1 and not reported:
        emitted = emitted_rate(metrics)
        return {} if emitted is None else {successors[0]: emitted}
    return reported


def _divided(rate: float, names: list[str], observation: Observation) -> dict[str, float]:
    """A rate among those it comes from, in proportion to what each emits; nothing where that is unknown."""
    if len(names) == 1:
        return {names[0]: rate}
    outputs = {name: emitted_rate(observation.operators[name]) for name in names}
    total = known_sum(outputs.values())
    shares = {name: ratio(output, total) for name, output in outputs.items()}
    return {name: rate * share for name, share in shares.items() if share is not None}


def selectivities(observation: Observation) -> EdgeValues:
    """Records sent over an edge per record consumed, where this window shows it.

    The true rates serve where the plain ones are missing. A source of which only the output is known is taken to
    pass on what it reads, as DS2 does (thesis 4.3).
    """
    topology = observation.topology
    rates = edge_rates(observation)
    found: EdgeValues = {}
    for name in topology.order:
        metrics = observation.operators[name]
        consumed = consumed_rate(metrics)
        if consumed is None and topology.is_source(name):
            consumed = emitted_rate(metrics)
        values = {to: ratio(rates[name].get(to), consumed) for to in topology.successors[name]}
        if len(values) == 1:
            successor = topology.successors[name][0]
            if values[successor] is None:
                values[successor] = ratio(metrics.true_output_rate, metrics.true_input_rate)
            if values[successor] is None and topology.is_source(name) and consumed is None:
                values[successor] = 1.0
        found[name] = {to: value for to, value in values.items() if value is not None}
    return found
