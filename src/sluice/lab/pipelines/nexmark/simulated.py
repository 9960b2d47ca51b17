"""What the queries have in common on the simulator: the costs of their ends, and the chains most of them are."""

from __future__ import annotations

from sluice.lab.pipelines.calibration import STATEFUL_BUSY_CEILING, flink_like, true_rate
from sluice.lab.simulator import Linear, SimulatedJob, SimulatedOperator, chain

BIDS_RATE = 150_000.0
"""Measured bids/s of one instance reading, or delivering the results of, a query that is not calibrated."""
RESULTS_RATE = 100_000.0
"""Measured results/s of one instance delivering those of a join."""


def bids_source(measured: float = BIDS_RATE, busy_ceiling: float = STATEFUL_BUSY_CEILING) -> SimulatedOperator:
    capacity = Linear(true_rate(measured, busy_ceiling))
    return SimulatedOperator(name="bids_source", capacity=capacity, net_bytes_per_record=100)


def auction_source() -> SimulatedOperator:
    return SimulatedOperator(name="auction_source", capacity=Linear(true_rate(60_000)), net_bytes_per_record=500)


def person_source() -> SimulatedOperator:
    return SimulatedOperator(name="person_source", capacity=Linear(true_rate(60_000)), net_bytes_per_record=200)


def sink(measured: float = RESULTS_RATE, busy_ceiling: float = STATEFUL_BUSY_CEILING) -> SimulatedOperator:
    return SimulatedOperator(name="sink", capacity=Linear(true_rate(measured, busy_ceiling)))


def bids_chain(
    operator: SimulatedOperator,
    *,
    initial: int,
    source_rate: float = BIDS_RATE,
    sink_rate: float = BIDS_RATE,
    busy_ceiling: float = STATEFUL_BUSY_CEILING,
) -> SimulatedJob:
    """Bids, one operator, a sink; all begin with the same number of instances."""
    names = ("bids_source", operator.name, "sink")
    return SimulatedJob(
        operators=(bids_source(source_rate, busy_ceiling), operator, sink(sink_rate, busy_ceiling)),
        edges=chain(*names),
        settings=flink_like(busy_ceiling),
        initial_parallelism=dict.fromkeys(names, initial),
    )
