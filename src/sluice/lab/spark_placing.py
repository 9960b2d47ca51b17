"""Placement on Spark: the strategy, the capacity of the workers, and when tasks are to be placed anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice.control.loop import Review
from sluice.errors import SluiceError
from sluice.model import Cluster, Observation, Target
from sluice.placement import Placer
from sluice.placement.planner import PlacementPlanner, UnitCosts
from sluice.registry import parameter


@dataclass(frozen=True, kw_only=True)
class WorkerCapacity:
    """What every worker of the cluster can do; slots and workers are those of the executors."""

    cpu: float | None = parameter(None, "cores of every worker")
    io: float | None = parameter(None, "state bytes/s every worker can read and write")
    net: float | None = parameter(None, "bytes/s every worker can send")

    def __post_init__(self) -> None:
        for name in ("cpu", "io", "net"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value}")


@dataclass(frozen=True, kw_only=True)
class SparkPlacement:
    """The strategy that places instances on the workers of a real cluster; `units` come from a profile, if any."""

    placer: Placer
    capacity: WorkerCapacity = field(default_factory=WorkerCapacity)
    units: Mapping[str, UnitCosts] = field(default_factory=dict)

    def planner(self, cluster: Callable[[], Cluster]) -> PlacementPlanner:
        return PlacementPlanner(placer=self.placer, cluster=cluster, units=self.units)


@dataclass
class WorkerReview:
    """Placed anew when workers go, come back or join."""

    cluster: Callable[[], Cluster]
    _placed_on: Cluster | None = None

    def __call__(self, observation: Observation, target: Target) -> Review:
        now = self.cluster()
        before, self._placed_on = self._placed_on or now, now
        return Review(now.slots, changes(before, now))


def changes(before: Cluster, now: Cluster) -> str | None:
    """What is different about the workers, in words; null if nothing is."""
    had = {worker.name: worker.slots for worker in before.workers}
    has = {worker.name: worker.slots for worker in now.workers}
    said = [f"worker {name} is gone" for name in had if name not in has]
    said += [f"worker {name} joined" for name in has if name not in had]
    said += [f"worker {name} has {has[name]} slots" for name in has if name in had and has[name] != had[name]]
    return ", ".join(said) or None


def cluster_of(engine: object) -> Callable[[], Cluster]:
    """The workers of an engine, asked anew every time."""

    def present() -> Cluster:
        found: Cluster | None = getattr(engine, "cluster", None)
        if found is None:
            raise SluiceError("this engine has no workers to place tasks on")
        return found

    return present
