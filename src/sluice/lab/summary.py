"""What a run comes to: the thesis' metrics (5.3), computed from the journal alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sluice.errors import BadInputError
from sluice.journal.records import End
from sluice.journal.results import CycleReport
from sluice.model import Observation
from sluice.model.base import Count, Frozen, NonNegative, Share


class Summary(Frozen):
    """One run in numbers. Latency is how long the record being read had waited in the source topic."""

    avg_slots: NonNegative
    max_slots: Count
    avg_latency_s: NonNegative
    p50_latency_s: NonNegative
    p95_latency_s: NonNegative
    max_latency_s: NonNegative
    rescales: Count
    throughput_ratio: NonNegative
    slo_violation_ratio: Share
    slot_seconds: NonNegative
    downtime_s: NonNegative
    lost_records: Count | None
    duplicated_records: Count | None
    placement_followed: Share | None = None
    """Of the tasks a placement had a worker for, those that ran there; null without placement."""
    price: NonNegative | None = None
    """Of the instances or nodes that ran, by their prices per hour; null where sizes have none."""


def summarise(reports: Sequence[CycleReport], end: End | None, slo_s: float, *, shared: bool = False) -> Summary:
    """`throughput_ratio` is what the sources read over what arrived; `slo_s` is the latency objective."""
    slots: list[int] = []
    lengths_s: list[float] = []
    latencies_s: list[float] = []
    rescales = 0
    arrived = read = 0.0
    placed = followed = 0
    prices: list[float] = []
    for report in reports:
        observation = report.cycle.observation
        interval_s = observation.interval_s
        slots.append(slots_of(observation, shared=shared))
        lengths_s.append(interval_s)
        latencies_s.extend(observation.latency_samples_s)
        rescales += report.result.is_action
        if observation.placement is not None:
            placed += observation.placement.placed
            followed += observation.placement.followed
        if observation.node_types:
            prices.append(price_per_hour(observation) * interval_s / 3600)
        for metrics in observation.operators.values():
            if metrics.arrival_rate is not None:
                arrived += metrics.arrival_rate * interval_s
                read += (metrics.input_rate or 0.0) * interval_s
    if not slots:
        raise BadInputError("the journal has no cycle to summarise")
    latency_s = np.array(latencies_s or [0.0])
    p50_s, p95_s = np.percentile(latency_s, [50, 95])
    slot_seconds = float(np.dot(slots, lengths_s))
    return Summary(
        avg_slots=slot_seconds / sum(lengths_s),
        max_slots=max(slots),
        avg_latency_s=float(latency_s.mean()),
        p50_latency_s=float(p50_s),
        p95_latency_s=float(p95_s),
        max_latency_s=float(latency_s.max()),
        rescales=rescales,
        throughput_ratio=read / arrived if arrived else 1.0,
        slo_violation_ratio=float((latency_s > slo_s).mean()),
        slot_seconds=slot_seconds,
        downtime_s=end.records.downtime_s if end else 0.0,
        lost_records=end.records.lost if end else 0,
        duplicated_records=end.records.duplicated if end else 0,
        placement_followed=followed / placed if placed else None,
        price=sum(prices) if prices else None,
    )


def price_per_hour(observation: Observation) -> float:
    """Of all nodes that are paid for, those that start or drain among them."""
    return sum(one.nodes * one.price_per_hour for one in observation.node_types.values())


def slots_of(observation: Observation, *, shared: bool) -> int:
    """Instances there are; operators that share theirs are counted once."""
    counts = observation.parallelism.values()
    return max(counts) if shared else sum(counts)
