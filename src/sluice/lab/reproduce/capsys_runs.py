"""Running a placed query on the simulator, as CAPSys 6.2 does: warm up, then measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sluice.errors import SluiceError
from sluice.lab.bench.statistics import estimate
from sluice.lab.reproduce.base import Row, claim
from sluice.lab.reproduce.capsys_jobs import StudiedQuery
from sluice.lab.simulator import RateCurve, SimulatedEngine, SimulatorSettings
from sluice.model import Cluster, Observation, Placement, Target
from sluice.placement import PlacementRequest, PlacementResult, Placer
from sluice.placement.planner import loads_at

WARM_UP_S, MEASURED_S = 360.0, 600.0
NOISE = 0.02
MET = 0.98
"""A target is met if at least this share of it is processed."""


@dataclass(frozen=True)
class Measured:
    """One run: processed over arrived, time the sources were blocked, time records waited to be read."""

    throughput_share: float
    backpressure: float
    latency_s: float


def constant(rate: float) -> RateCurve:
    def curve(times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.full(times_s.shape, rate)

    return curve


def arrivals(query: StudiedQuery, rate: float) -> dict[str, RateCurve]:
    return {source: constant(rate * share) for source, share in query.shares.items()}


def settings(cluster: Cluster) -> SimulatorSettings:
    return SimulatorSettings(cluster=cluster, noise=NOISE, rescale="job", downtime_s=10.0)


def request(query: StudiedQuery, cluster: Cluster, rate: float, parallelism: Mapping[str, int]) -> PlacementRequest:
    return PlacementRequest(
        graph=query.graph,
        parallelism=dict(parallelism),
        cluster=cluster,
        loads=loads_at(query.units(), query.input_rates(rate), parallelism),
    )


def must_place(placer: Placer, request: PlacementRequest) -> PlacementResult:
    placed = placer.place(request)
    if placed.placement is None:
        raise SluiceError(placed.reason)
    return placed


def measure(query: StudiedQuery, cluster: Cluster, rate: float, placement: Placement, seed: int) -> Measured:
    return measure_by_source(query, cluster, arrivals(query, rate), placement, seed, [tuple(query.shares)])[0]


def measure_by_source(
    query: StudiedQuery,
    cluster: Cluster,
    curves: Mapping[str, RateCurve],
    placement: Placement,
    seed: int,
    groups: Sequence[tuple[str, ...]],
) -> list[Measured]:
    """One result per group of sources."""
    engine = SimulatedEngine(query.job(settings(cluster)), curves, seed)
    engine.start(Target(parallelism=placement.parallelism, placement=placement))
    engine.clock.sleep_s(WARM_UP_S)
    engine.observe()
    engine.clock.sleep_s(MEASURED_S)
    seen = engine.observe()
    engine.stop()
    return [outcome(seen, sources) for sources in groups]


def outcome(seen: Observation, sources: Sequence[str]) -> Measured:
    found = [seen.operators[name] for name in sources]
    arrived = sum(metrics.arrival_rate or 0.0 for metrics in found)
    return Measured(
        throughput_share=min(sum(metrics.input_rate or 0.0 for metrics in found) / arrived, 1.0),
        backpressure=max(metrics.backpressure or 0.0 for metrics in found),
        latency_s=max(metrics.latency_s or 0.0 for metrics in found),
    )


def throughput_rows(query: str, runs: Mapping[str, Sequence[Measured]], same_as: str = "") -> list[Row]:
    """caps at the target in every run, the others below it: median, smallest and largest share of the target."""
    shares = {name: [run.throughput_share for run in found] for name, found in runs.items()}
    meets = min(shares["caps"]) >= MET
    rows = [claim(f"{query}: caps meets the target", "yes", box(shares["caps"]), meets, same_as=same_as)]
    return rows + [
        claim(f"{query}: {name}", "below caps", box(found), is_below(found, shares["caps"]), same_as=same_as)
        for name, found in shares.items()
        if name != "caps"
    ]


def is_below(values: Sequence[float], others: Sequence[float]) -> bool:
    """By the 95 % interval of the difference, run by run; by its sign where there is one run only."""
    difference = estimate(a - b for a, b in zip(values, others, strict=True))
    if difference.mean is None:
        return False
    return (difference.mean if difference.high is None else difference.high) < 0


def box(shares: Sequence[float]) -> str:
    low, middle, high = np.quantile(shares, [0.0, 0.5, 1.0])
    return f"{middle:.0%} ({low:.0%} to {high:.0%})"
