"""Placement inside the control loop: after every decision, with the load every operator is to take in.

A task's load is its operator's cost per record, from a profile or an observation, times the rate (CAPSys 5.1). Where a
partition of the state was seen to take more CPU time than a task should, the task that keeps it is a group of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sluice.dataflow.rates import expected_input_rates
from sluice.errors import SluiceError
from sluice.model import Cluster, Graph, Observation, Placement
from sluice.model.base import Frozen, Name, NonNegative
from sluice.placement.request import PlacementRequest, Placer, TaskGroup, TaskLoad

HEAVY = 1.5
"""A task with so many times its even share of the work is heavy: less may be a window's chance."""


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
        loads = self._loads(parallelism, observation)
        request = PlacementRequest(
            graph=graph,
            parallelism=dict(parallelism),
            cluster=self.workers,
            loads=loads,
            groups=skewed_groups(loads, parallelism, observation) if observation else {},
            present=current,
            pinned=self.pinned,
        )
        result = self.placer.place(request)
        if result.placement is None:
            raise SluiceError(f"placement: {result.reason}")
        return result.placement, "; ".join((f"placement: {result.reason}", *skew_in_words(result.placement)))

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


def skewed_groups(
    loads: Mapping[str, TaskLoad], parallelism: Mapping[str, int], observation: Observation
) -> dict[Name, tuple[TaskGroup, ...]]:
    """Groups of the operators with heavy tasks: each of these is one, all others together are one.

    Only the CPU time is skewed: nothing else is known by partition.
    """
    groups: dict[str, tuple[TaskGroup, ...]] = {}
    for name, load in loads.items():
        metrics, tasks = observation.operators.get(name), parallelism[name]
        heavy = heavy_shares(metrics.state_shares or (), tasks) if metrics else []
        if heavy:
            others = tasks - len(heavy)
            parts = [*((1, share) for share in heavy), (others, max(0.0, 1 - sum(heavy)) / others)]
            groups[name] = tuple(
                TaskGroup(tasks=count, load=load.model_copy(update={"cpu": load.cpu * tasks * share}))
                for count, share in parts
            )
    return groups


def heavy_shares(state_shares: Sequence[float], tasks: int) -> list[float]:
    """Share of the work of every task that is heavy by one partition of the state alone, heaviest first."""
    evenly = max(0.0, 1 - sum(state_shares)) / tasks
    shares = sorted((share + evenly for share in state_shares), reverse=True)
    return [share for share in shares if share * tasks > HEAVY]


def skew_in_words(placement: Placement) -> list[str]:
    """A sentence for every operator with heavy tasks."""
    said = []
    for name, tasks in placement.parallelism.items():
        if shares := [f"{share:.0%}" for _, share in placement.heavy_of(name)]:
            number = "one task" if len(shares) == 1 else f"{len(shares)} tasks"
            said.append(f"{name} has {number} of {tasks} with {' and '.join(shares)} of its work")
    return said
