"""Rates along the graph: what arrives at an operator, what each edge carries, what every operator must take in.

Any rate may be unknown (null), and nothing unknown is taken for 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.dataflow.numbers import LARGEST, known_sum, ratio
from sluice.model import Observation, OperatorMetrics, Topology

EdgeValues = dict[str, dict[str, float]]
"""Operator -> successor -> value; an edge of which nothing is known is left out."""

MOST_UNREAD = 1.25
"""A source to which even more arrives than this times what it reads has just started: its rates say nothing."""

NO_BACKLOG: Mapping[str, float] = {}


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
    """Records/s that reach its input: reported, else consumed plus queue growth (none where no queue is reported)."""
    if metrics.arrival_rate is not None:
        return metrics.arrival_rate
    consumed = consumed_rate(metrics)
    return None if consumed is None else max(0.0, consumed + (metrics.lag_rate or 0.0))


def source_arrival_rate(metrics: OperatorMetrics) -> float | None:
    """Records/s written to the topic a source reads.

    What it reads says nothing about that unless the growth of the topic is known too.
    """
    if metrics.arrival_rate is None and metrics.lag_rate is None:
        return None
    return arriving_rate(metrics)


def source_loads(observation: Observation) -> dict[str, float] | None:
    """Arrival rate of every source; null if one is unknown."""
    loads: dict[str, float] = {}
    for name in observation.topology.sources:
        rate = source_arrival_rate(observation.operators[name])
        if rate is None:
            return None
        loads[name] = rate
    return loads


def job_throughput(observation: Observation) -> float | None:
    """Records/s all sources read together."""
    return known_sum(consumed_rate(observation.operators[name]) for name in observation.topology.sources)


def capacity(metrics: OperatorMetrics) -> float | None:
    """Records/s all its instances could take in without waiting; null while nothing shows it."""
    each = metrics.per_instance_rate()
    return None if each is None else each * metrics.parallelism


def topic_readers(observation: Observation) -> dict[str, OperatorMetrics]:
    """Operators that read a queue without a bound: sources always, others where topics lie between operators.

    The filling of a bounded buffer is no backlog: it moves by a few records and ends in backpressure.
    """
    topology = observation.topology
    return {
        name: metrics
        for name, metrics in observation.operators.items()
        if metrics.buffer_usage is None or topology.is_source(name)
    }


def edge_rates(observation: Observation) -> EdgeValues:
    """Records/s on every edge.

    As the engine reports it; else the whole output where there is one successor; else, for a fan-out, what
    arrives at the successor less what its other predecessors are known to send there. Of several predecessors
    that all fan out, each gets a part in proportion to its output.
    """
    topology, operators = observation.topology, observation.operators
    rates: EdgeValues = {}
    uncertain: dict[str, list[str]] = {}
    for name in topology.order:
        successors = topology.successors[name]
        rates[name] = known = _certain_rates(operators[name], successors) if successors else {}
        if len(known) < len(successors):
            for to in successors:
                if to not in known:
                    uncertain.setdefault(to, []).append(name)
    for successor, names in uncertain.items():
        arriving = arriving_rate(operators[successor])
        if arriving is not None:
            sent = sum(rates[name].get(successor, 0.0) for name in topology.predecessors[successor])
            for name, rate in _divided(max(0.0, arriving - sent), names, observation).items():
                rates[name][successor] = rate
    return rates


def _certain_rates(metrics: OperatorMetrics, successors: tuple[str, ...]) -> dict[str, float]:
    reported = metrics.output_rates
    if reported:
        reported = {to: rate for to, rate in reported.items() if to in successors}
    if len(successors) == 1 and not reported:
        emitted = emitted_rate(metrics)
        return {} if emitted is None else {successors[0]: emitted}
    return reported or {}


def _divided(rate: float, names: list[str], observation: Observation) -> dict[str, float]:
    """A rate among the operators it comes from, in proportion to their outputs; nothing where those are unknown."""
    if len(names) == 1:
        return {names[0]: rate}
    outputs = [emitted_rate(observation.operators[name]) for name in names]
    total = known_sum(outputs)
    if not total:
        return {}
    return {name: rate * (output / total) for name, output in zip(names, outputs, strict=True) if output is not None}


def selectivities(observation: Observation) -> EdgeValues:
    """Records sent over an edge per record consumed, where this window shows it.

    DS2's ratio of true rates where both are known, of counts otherwise; the rates of its edges only decide how an
    operator's output splits.
    """
    topology = observation.topology
    rates = edge_rates(observation)
    values: EdgeValues = {}
    for name in topology.order:
        seen = {
            to: _selectivity(name, to, observation.operators[name], topology, rates[name].get(to))
            for to in topology.successors[name]
        }
        values[name] = {to: value for to, value in seen.items() if value is not None}
    return values


def _selectivity(
    name: str, successor: str, metrics: OperatorMetrics, topology: Topology, edge_rate: float | None
) -> float | None:
    whole_output = topology.successors[name] == (successor,) and not metrics.output_rates
    of_true_rates = ratio(metrics.true_output_rate, metrics.true_input_rate)
    if of_true_rates is not None:
        share = 1.0 if whole_output else ratio(edge_rate, emitted_rate(metrics))
        if share is not None:
            return min(of_true_rates * share, LARGEST)
    consumed = consumed_rate(metrics)
    if consumed is None and topology.is_source(name):
        # a source of which only the output is known passes on what it reads (thesis 4.3)
        consumed = emitted_rate(metrics)
        if consumed is None and whole_output:
            return 1.0
    return ratio(edge_rate, consumed)


def pass_along(
    topology: Topology,
    loads: Mapping[str, float | None],
    selectivity: EdgeValues,
    backlog: Mapping[str, float] = NO_BACKLOG,
) -> dict[str, float | None]:
    """The loads of the sources passed along the graph: records/s every operator must take in.

    Null downstream of whatever is unknown. `backlog` has records/s that an operator takes from its own queue on top.
    """
    rates: dict[str, float | None] = {}
    for name in topology.order:
        if topology.is_source(name):
            rate = loads[name]
        else:
            rate = known_sum(_product(rates[up], selectivity[up].get(name)) for up in topology.predecessors[name])
        rates[name] = rate if rate is None else min(rate + backlog.get(name, 0.0), LARGEST)
    return rates


def _product(rate: float | None, selectivity: float | None) -> float | None:
    return None if rate is None or selectivity is None else rate * selectivity


def target_rates(observation: Observation, selectivity: EdgeValues, catch_up_s: float = 0.0) -> dict[str, float | None]:
    """Records/s every operator must take in to keep up with what arrives (DS2).

    With `catch_up_s`, its known lag is added to the target of every reader of a topic, and so passed on downstream.
    """
    topology = observation.topology
    loads = {name: source_arrival_rate(observation.operators[name]) for name in topology.sources}
    readers = topic_readers(observation) if catch_up_s else {}
    backlog = {name: (metrics.lag or 0.0) / catch_up_s for name, metrics in readers.items()}
    return pass_along(topology, loads, selectivity, backlog)


@dataclass(frozen=True)
class Need:
    """What one operator must take in, and how many instances that takes: an exact number, not rounded."""

    target_rate: float | None
    per_instance_rate: float | None
    instances: float | None


def instances_needed(
    observation: Observation, selectivity: EdgeValues, *, catch_up_s: float = 0.0, max_busy: float = 1.0
) -> dict[str, Need]:
    """Target rate over the true rate of one instance, which is busy for `max_busy` of the time at most."""
    targets = target_rates(observation, selectivity, catch_up_s)
    needs: dict[str, Need] = {}
    for name, metrics in observation.operators.items():
        rate = metrics.per_instance_rate()
        reached = None if rate is None else rate * max_busy
        needs[name] = Need(targets[name], reached, ratio(targets[name], reached))
    return needs


def expected_input_rates(observation: Observation) -> dict[str, float]:
    """What every operator takes in once the arriving load flows through, with an assumption for all that is unknown.

    A source of unknown load goes on reading as it did (nothing, if that is unknown as well); an edge of unknown
    selectivity passes records on one for one.
    """
    topology = observation.topology
    seen = selectivities(observation)
    selectivity = {name: dict.fromkeys(topology.successors[name], 1.0) | seen[name] for name in topology.order}
    loads = {name: arriving_rate(observation.operators[name]) or 0.0 for name in topology.sources}
    return {name: rate or 0.0 for name, rate in pass_along(topology, loads, selectivity).items()}


def real_input_rates(observation: Observation) -> dict[str, float]:
    """Records/s every operator would receive if the job read just what arrives; unknown ones are left out.

    ContTune 4.1: while a job is not under-provisioned, what its operators are seen to receive is the real rate. A
    job that works off a backlog reads more than arrives, one that is slightly too small reads less; the rates are
    scaled by that ratio.
    """
    loads = source_loads(observation)
    arriving_per_read = None if loads is None else ratio(sum(loads.values()), job_throughput(observation))
    scale = 1.0 if arriving_per_read is None else min(arriving_per_read, MOST_UNREAD)
    rates = {name: arriving_rate(metrics) for name, metrics in observation.operators.items()}
    return {name: rate * scale for name, rate in rates.items() if rate is not None} | (loads or {})


def passed_input_rates(observation: Observation) -> dict[str, float]:
    """The same from the loads of the sources and what every operator emits per record; else as `real_input_rates`.

    What an operator receives in a window comes in the batches of the one before it, two or three to a short window;
    what that one emits per record is counted on the same records, and steady.
    """
    passed = target_rates(observation, selectivities(observation))
    return real_input_rates(observation) | {name: rate for name, rate in passed.items() if rate is not None}
