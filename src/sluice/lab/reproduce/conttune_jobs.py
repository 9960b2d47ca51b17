"""ContTune's queries with the graphs they have, and curves of the published shape.

Known: the graphs (its section 7.1), the rates of a load unit (table 3), the cores of a job at ten units (table 5), and
one capacity curve, that of query 1's mapper; a second one may be given. Slots are shared, so a job's cores are the
instances of its largest operator: that one gets the published curve, scaled so that the cores of table 5 just carry ten
units. Not known, and assumed: selectivities, and that the other operators have the same shape and need a third of the
cores (none to speak of behind a window or a filter).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sluice.lab.simulator import CapacityTable, Linear, SimulatedJob, SimulatedOperator, SimulatorSettings
from sluice.model import Edge

LEVELS = 10
REDEPLOY_S = 17.7
"""Fitted: table 4d over the reconfigurations of table 4a, all methods and queries."""
MARGIN = 1.01
AMPLE = 2.0
OTHERS_SHARE = 1 / 3

MAPPER_CURVE = {
    1: 529573,
    2: 966817,
    4: 1829696,
    6: 2535503,
    7: 2936889,
    8: 3118478,
    10: 3721099,
    13: 4624714,
    15: 4967828,
    20: 6350677,
    21: 6465250,
    25: 7089387,
    26: 7476392,
}
"""Of query 1's mapper by parallelism, records/s, as published; its repeats scatter by 1.27 %, all pooled."""
Curve = Mapping[int, float]


@dataclass(frozen=True)
class GraphStage:
    """An operator behind the sources; `share` is its cores over those of the largest, 0 for next to no work."""

    name: str
    inputs: tuple[str, ...]
    share: float = OTHERS_SHARE
    selectivity: float = 1.0
    window_s: float | None = None


@dataclass(frozen=True)
class TunedQuery:
    """Records/s of a load unit per source, cores at ten units (table 5), and ContTune's largest parallelism (4b)."""

    sources: Mapping[str, float]
    stages: tuple[GraphStage, ...]
    cores: int
    largest: int

    @property
    def unit_rate(self) -> float:
        return sum(self.sources.values())

    def rates_at_ten(self) -> dict[str, float]:
        """Input rate of every operator at the highest load."""
        rates = {name: LEVELS * rate for name, rate in self.sources.items()}
        emitted = dict(rates)
        for stage in self.stages:
            rates[stage.name] = sum(emitted[name] for name in stage.inputs)
            emitted[stage.name] = rates[stage.name] * stage.selectivity
        return rates


QUERIES = {
    "WordCount": TunedQuery(
        {"source": 100e3},
        (GraphStage("splitter", ("source",), selectivity=5.0), GraphStage("counter", ("splitter",), 1.0)),
        13,
        16,
    ),
    "Q1": TunedQuery({"bids": 700e3}, (GraphStage("map", ("bids",), 1.0), GraphStage("sink", ("map",))), 25, 32),
    "Q2": TunedQuery(
        {"bids": 900e3},
        (GraphStage("filter", ("bids",), 1.0, selectivity=1 / 123), GraphStage("sink", ("filter",), 0.0)),
        23,
        32,
    ),
    "Q3": TunedQuery(
        {"auctions": 200e3, "persons": 40e3},
        (
            GraphStage("filter", ("persons",), selectivity=0.25),
            GraphStage("join", ("auctions", "filter"), 1.0, selectivity=0.2),
            GraphStage("sink", ("join",)),
        ),
        18,
        32,
    ),
    "Q5": TunedQuery(
        {"bids": 80e3},
        (GraphStage("window", ("bids",), 1.0, selectivity=0.01, window_s=10.0), GraphStage("sink", ("window",), 0.0)),
        22,
        32,
    ),
    "Q8": TunedQuery(
        {"auctions": 100e3, "persons": 60e3},
        (
            GraphStage("join", ("auctions", "persons"), 1.0, selectivity=0.1, window_s=10.0),
            GraphStage("sink", ("join",), 0.0),
        ),
        10,
        16,
    ),
}


def tuned_job(query: TunedQuery, noise: float, curve: Curve) -> SimulatedJob:
    """Sources are ample; a redeployment stops the whole job, as in Flink."""
    rates = query.rates_at_ten()
    operators = [
        SimulatedOperator(name=name, capacity=Linear(AMPLE * LEVELS * rate)) for name, rate in query.sources.items()
    ]
    for stage in query.stages:
        needed = rates[stage.name]
        cores = math.ceil(query.cores * stage.share)
        capacity = scaled(curve, needed, cores) if cores else Linear(LEVELS * AMPLE * needed)
        operators.append(
            SimulatedOperator(
                name=stage.name, capacity=capacity, selectivity=stage.selectivity, window_s=stage.window_s
            )
        )
    return SimulatedJob(
        operators=tuple(operators),
        edges=tuple(Edge(source=name, target=stage.name) for stage in query.stages for name in stage.inputs),
        settings=SimulatorSettings(
            buffer_records=int(query.unit_rate / 10), rescale="job", downtime_s=REDEPLOY_S, noise=noise
        ),
    )


def scaled(curve: Curve, rate: float, cores: int) -> CapacityTable:
    """The curve's shape, just enough for the rate with so many cores."""
    factor = MARGIN * rate / CapacityTable(curve)(cores)
    return CapacityTable({instances: factor * capacity for instances, capacity in curve.items()})
