"""Placement inside the control loop: after every decision, with the load every operator is to take in.

A task's load is its operator's cost per record, from a profile or an observation, times the rate (CAPSys 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice.dataflow.rates import expected_input_rates
from sluice.errors import SluiceError
from sluice.model import Cluster, Graph, Observation, Placement
from sluice.model.base import Frozen, Name, NonNegative
from sluice.placement.request import PlacementRequest, Placer, TaskLoad


class UnitCosts(Frozen):
    """Demand per record an operator takes in: core seconds, state bytes, emitted bytes."""

    cpu: NonNegative = 0.0
    io: NonNegative = 0.0
    net: NonNegative = 0.0

    def at(self, input_rate: float, tasks: int) -> TaskLoad:
        """Load of one of `tasks` equal tasks when the operator takes in `input_rate` records/s."""
        share = input_rate / tasks
        return TaskLoad(cpu=self.cpu * share, io=self.io * share, net=self.net * share)


@dataclass(frozen=True, kw_only=True)
class PlacementPlanner:
    """Calls a strategy with per-task loads at the arriving load.

    `units` come from profiling operators alone. Operators without any fall back to the last window, which overstates
    the cpu of operators that wait for a crowded worker.
    """

    placer: Placer
    cluster: Cluster | Callable[[], Cluster]
    """The workers; a function where they come and go."""
    units: Mapping[str, UnitCosts] = field(default_factory=dict)
    pinned: Placement | None = None
    links: bool = True
    """Whether records go from task to task; false where they pass through files that all workers share, so that it does
    not matter to the network which neighbours share a worker."""

    def __call__(
        self, graph: Graph, parallelism: Mapping[str, int], observation: Observation | None, current: Placement | None
    ) -> tuple[Placement, str]:
        request = PlacementRequest(
            graph=graph,
            parallelism=dict(parallelism),
            cluster=self.workers,
            loads=self._loads(parallelism, observation),
            present=current,
            pinned=self.pinned,
        )
        result = self.placer.place(request)
        if result.placement is None:
            raise SluiceError(f"placement: {result.reason}")
        return result.placement, f"placement: {result.reason}"

    @property
    def workers(self) -> Cluster:
        return self.cluster() if callable(self.cluster) else self.cluster

    def _loads(self, parallelism: Mapping[str, int], observation: Observation | None) -> dict[str, TaskLoad]:
        if observation is None:
            # nothing has run yet: assume that every task takes in the same rate
            rates = {name: float(count) for name, count in parallelism.items()}
            return loads_at(self._linked(self.units), rates, parallelism)
        units = {**observed_unit_costs(observation), **self.units}
        return loads_at(self._linked(units), expected_input_rates(observation), parallelism)

    def _linked(self, units: Mapping[str, UnitCosts]) -> Mapping[str, UnitCosts]:
        return units if self.links else without_links(units)


def observed_unit_costs(observation: Observation) -> dict[Name, UnitCosts]:
    """Unit costs of the operators that took in records; `cpu` falls back to the busy share where it is not measured."""
    units: dict[str, UnitCosts] = {}
    for name, metrics in observation.operators.items():
        if not metrics.input_rate:
            continue
        per_instance = metrics.cpu if metrics.cpu is not None else metrics.busy or 0.0
        units[name] = UnitCosts(
            cpu=per_instance * metrics.parallelism / metrics.input_rate,
            io=(metrics.io_rate or 0.0) / metrics.input_rate,
            net=(metrics.net_rate or 0.0) / metrics.input_rate,
        )
    return units


def without_links(units: Mapping[str, UnitCosts]) -> dict[Name, UnitCosts]:
    """The same costs where no record goes from one task to another."""
    return {name: unit.model_copy(update={"net": 0.0}) for name, unit in units.items()}


def loads_at(
    units: Mapping[str, UnitCosts], input_rates: Mapping[str, float], parallelism: Mapping[str, int]
) -> dict[Name, TaskLoad]:
    """Per-task loads at these rates, for every operator whose unit costs and rate are known."""
    return {
        name: unit.at(input_rates[name], parallelism[name])
        for name, unit in units.items()
        if name in input_rates and name in parallelism
    }
