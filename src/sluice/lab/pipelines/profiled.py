"""A standard pipeline on the simulator with the costs that were measured on Spark instead of the thesis' ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluice.errors import BadInputError
from sluice.lab.pipelines.base import PipelineDefinition
from sluice.lab.simulator import CapacityTable, SimulatedJob, SimulatedOperator, SimulatorSettings
from sluice.model.costs import OperatorCosts
from sluice.placement.request import Profile


def spark_like() -> SimulatorSettings:
    """Topics without a bound between operators, and rescales that take effect with the next micro-batch."""
    return SimulatorSettings(buffer_records=None, rescale="operators", downtime_s=0.0)


@dataclass(frozen=True, kw_only=True)
class ProfiledPipeline:
    """Topology and windows are the definition's, all costs the profile's, and so are the rates at load 1."""

    definition: PipelineDefinition
    profile: Profile

    def __post_init__(self) -> None:
        known = {operator.name: operator.costs for operator in self.profile.operators}
        names = self.definition.simulated().graph.names
        if set(known) != set(names):
            raise BadInputError(
                f"the profile has operators {', '.join(sorted(known))}, the pipeline {', '.join(sorted(names))}"
            )
        for name, costs in known.items():
            if costs is None:
                raise BadInputError(f"the profile has no costs of operator {name!r}; 'sluice profile' measures them")

    @property
    def peak_rate(self) -> float:
        return max(self.profile.source_rates.values())

    def source_shares(self) -> Mapping[str, float]:
        return {name: rate / self.peak_rate for name, rate in self.profile.source_rates.items()}

    def simulated(self) -> SimulatedJob:
        costs = {operator.name: operator.costs for operator in self.profile.operators if operator.costs}
        job = self.definition.simulated()
        return replace(
            job,
            operators=tuple(_measured(operator, costs[operator.name]) for operator in job.operators),
            settings=spark_like(),
            initial_parallelism=dict.fromkeys(job.graph.names, 1),
        )


def _measured(operator: SimulatedOperator, costs: OperatorCosts) -> SimulatedOperator:
    return replace(
        operator,
        capacity=CapacityTable(costs.capacity),
        selectivity=costs.selectivity,
        state_bytes_per_record=costs.state_bytes_per_record,
        cpu_per_record=costs.cpu_s_per_record,
        io_bytes_per_record=costs.io_bytes_per_record,
        net_bytes_per_record=costs.net_bytes_per_record,
    )
