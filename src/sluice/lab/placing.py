"""Placement on the simulator: the cluster, the strategy, and the unit costs of operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.lab.simulator import SimulatedJob
from sluice.lab.simulator.state import make_shape
from sluice.model import Cluster
from sluice.placement import Placer
from sluice.placement.planner import PlacementPlanner, UnitCosts
from sluice.registry import parameter


@dataclass(frozen=True, kw_only=True)
class UniformCluster:
    """Equal workers; a capacity left out is unlimited."""

    workers: int = parameter(4, "number of workers")
    slots: int = parameter(8, "slots of every worker")
    cpu: float | None = parameter(None, "cores of every worker")
    io: float | None = parameter(None, "state bytes/s every worker can read and write")
    net: float | None = parameter(None, "bytes/s every worker can send")

    def __post_init__(self) -> None:
        for name in ("workers", "slots", "cpu", "io", "net"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value}")

    def cluster(self) -> Cluster:
        return Cluster.uniform(self.workers, self.slots, cpu=self.cpu, io=self.io, net=self.net)


@dataclass(frozen=True, kw_only=True)
class PlacementSetup:
    """The strategy that places instances after every decision, and the workers it fills."""

    placer: Placer
    cluster: Cluster

    def planner(self, job: SimulatedJob) -> PlacementPlanner:
        return PlacementPlanner(placer=self.placer, cluster=self.cluster, units=unit_costs(job))


def unit_costs(job: SimulatedJob) -> Mapping[str, UnitCosts]:
    """What profiling every operator alone would measure: the simulator's own costs."""
    costs = make_shape(job).unit_costs
    return {
        name: UnitCosts(cpu=float(cpu), io=float(io), net=float(net))
        for name, (cpu, io, net) in zip(job.graph.topology.names, costs, strict=True)
    }
