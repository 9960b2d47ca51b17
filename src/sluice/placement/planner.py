"""Placing inside the control loop: after every decision, with what the decision expects every operator to take in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice.errors import SluiceError
from sluice.model import Cluster, Graph, Observation, Placement
from sluice.placement.base import PlacementRequest, Placer, TaskLoad
from sluice.placement.loads import UnitCosts, loads_at, observed_unit_costs


@dataclass(frozen=True, kw_only=True)
class PlacementPlanner:
    """Calls a strategy with per-task loads at the arriving load (CAPSys 5.1).

    `units` come from profiling operators alone. Operators without any fall back to what the last window showed, which
    overstates the cpu of operators that wait for a crowded worker.
    """

    placer: Placer
    cluster: Cluster
    units: Mapping[str, UnitCosts] = field(default_factory=dict)
    pinned: Placement | None = None

    def __call__(
        self, graph: Graph, parallelism: Mapping[str, int], observation: Observation | None, current: Placement | None
    ) -> tuple[Placement, str]:
        request = PlacementRequest(
            graph=graph,
            parallelism=dict(parallelism),
            cluster=self.cluster,
            loads=self._loads(parallelism, observation),
            present=current,
            pinned=self.pinned,
        )
        placed = self.placer.place(request)
        if placed.placement is None:
            raise SluiceError(f"placement: {placed.reason}")
        return placed.placement, f"placement: {placed.reason}"

    def _loads(self, parallelism: Mapping[str, int], observation: Observation | None) -> dict[str, TaskLoad]:
        if observation is None:
            # nothing has run yet: every task is taken to be as busy as the next
            return {name: unit.at(parallelism[name], parallelism[name]) for name, unit in self.units.items()}
        units = {**observed_unit_costs(observation), **self.units}
        return loads_at(units, expected_input_rates(observation), parallelism)


def expected_input_rates(observation: Observation) -> dict[str, float]:
    """What every operator takes in once the arriving load flows through: arrivals times the observed selectivities.

    An operator whose selectivity is not known (it took in nothing) is taken to pass records on one for one.
    """
    topology = observation.topology
    incoming = dict.fromkeys(topology.order, 0.0)
    for name in topology.order:
        metrics = observation.operators[name]
        if topology.is_source(name):
            incoming[name] = metrics.arrival_rate if metrics.arrival_rate is not None else metrics.input_rate or 0.0
        growth = incoming[name] / metrics.input_rate if metrics.input_rate else None
        for target in topology.successors[name]:
            sent = (metrics.output_rates or {}).get(target, metrics.output_rate)
            incoming[target] += incoming[name] if growth is None or sent is None else growth * sent
    return incoming
