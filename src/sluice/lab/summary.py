"""What a run comes to: the thesis' metrics (5.3), computed from the journal alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sluice.errors import BadInputError
from sluice.journal.file import Entry
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


def summarise(entries: Iterable[Entry], slo_s: float) -> Summary:
    """`throughput_ratio` is what the sources read over what arrived; `slo_s` is the latency objective."""
    slots: list[int] = []
    lengths_s: list[float] = []
    latencies_s: list[float] = []
    rescales = 0
    arrived = read = 0.0
    records: dict[str, Any] | None = None
    for entry in entries:
        if entry["kind"] == "end":
            records = entry["records"]
        if entry["kind"] != "cycle":
            continue
        observation = entry["observation"]
        interval_s = observation["interval_s"]
        slots.append(sum(metrics["parallelism"] for metrics in observation["operators"].values()))
        lengths_s.append(interval_s)
        latencies_s.extend(observation["latency_samples_s"])
        rescales += bool(entry["applied"] and entry["applied"]["error"] is None)
        for metrics in observation["operators"].values():
            if metrics["arrival_rate"] is not None:
                arrived += metrics["arrival_rate"] * interval_s
                read += (metrics["input_rate"] or 0.0) * interval_s
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
        downtime_s=records["downtime_s"] if records else 0.0,
        lost_records=records["lost"] if records else 0,
        duplicated_records=records["duplicated"] if records else 0,
    )
