"""What a task weighs: unit costs from a profile or an observation, times the rate it is to run at (CAPSys 5.1)."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.model import Observation
from sluice.model.base import Frozen, Name, NonNegative
from sluice.placement.base import TaskLoad


class UnitCosts(Frozen):
    """Demand per record an operator takes in: core seconds, state bytes, emitted bytes."""

    cpu: NonNegative = 0.0
    io: NonNegative = 0.0
    net: NonNegative = 0.0

    def at(self, input_rate: float, tasks: int) -> TaskLoad:
        """Load of one of `tasks` equal tasks when the operator takes in `input_rate` records/s."""
        share = input_rate / tasks
        return TaskLoad(cpu=self.cpu * share, io=self.io * share, net=self.net * share)


def observed_unit_costs(observation: Observation) -> dict[Name, UnitCosts]:
    """Unit costs of the operators that took in records; `cpu` falls back to the busy share where it is not measured."""
    found: dict[str, UnitCosts] = {}
    for name, metrics in observation.operators.items():
        if not metrics.input_rate:
            continue
        per_instance = metrics.cpu if metrics.cpu is not None else metrics.busy or 0.0
        found[name] = UnitCosts(
            cpu=per_instance * metrics.parallelism / metrics.input_rate,
            io=(metrics.io_rate or 0.0) / metrics.input_rate,
            net=(metrics.net_rate or 0.0) / metrics.input_rate,
        )
    return found


def loads_at(
    units: Mapping[str, UnitCosts], input_rates: Mapping[str, float], parallelism: Mapping[str, int]
) -> dict[Name, TaskLoad]:
    """Per-task loads at the wished rates, for every operator whose unit costs and rate are known."""
    return {
        name: unit.at(input_rates[name], parallelism[name])
        for name, unit in units.items()
        if name in input_rates and name in parallelism
    }
