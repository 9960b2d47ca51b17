"""Placement on Spark: the strategy, the capacity of the workers, and when tasks are to be placed anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice.control.loop import Review
from sluice.errors import SluiceError
from sluice.model import Cluster, Observation, Target
from sluice.placement import Placer
from sluice.placement.planner import PlacementPlanner, UnitCosts
from sluice.placement.request import Profile
from sluice.registry import parameter

HOT, ROOM = 0.9, 0.6
"""Busy shares of a worker that is full, and of others that could take something from it."""
HOT_WINDOWS = 3
QUIET_WINDOWS = 10


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


def units_of(profile: Profile) -> dict[str, UnitCosts]:
    """What profiling measured per record; operators whose costs are unknown are observed instead."""
    return {
        op.name: UnitCosts(
            cpu=op.costs.cpu_s_per_record or 0.0,
            io=op.costs.io_bytes_per_record,
            net=op.costs.net_bytes_per_record,
        )
        for op in profile.operators
        if op.costs is not None
    }


@dataclass
class WorkerReview:
    """Placed anew when workers go, come back or join, and when one stays hot while others have room.

    A hot worker shows contention that the costs did not predict; the strategy then has newer ones. After that it gets
    `QUIET_WINDOWS` to show what came of it. Without placement only the slots there are matter.
    """

    cluster: Callable[[], Cluster]
    places: bool = True
    _placed_on: Cluster | None = None
    _hot: str | None = None
    _hot_windows: int = 0
    _quiet_windows: int = 0

    def __call__(self, observation: Observation, target: Target) -> Review:
        now = self.cluster()
        if not self.places:
            return Review(now.slots)
        before, self._placed_on = self._placed_on or now, now
        return Review(now.slots, changes(before, now) or self._heat(observation))

    def _heat(self, observation: Observation) -> str | None:
        hot = hot_worker(observation)
        self._hot_windows = self._hot_windows + 1 if hot is not None and hot == self._hot else int(hot is not None)
        self._hot = hot
        self._quiet_windows = max(0, self._quiet_windows - 1)
        if hot is None or self._hot_windows < HOT_WINDOWS or self._quiet_windows:
            return None
        self._hot_windows, self._quiet_windows = 0, QUIET_WINDOWS
        return f"worker {hot} was {observation.workers[hot].busy:.0%} busy for {HOT_WINDOWS} windows, others have room"


def hot_worker(observation: Observation) -> str | None:
    """The busiest worker, if it is nearly full and the others together are far from it."""
    busy = {name: worker.busy for name, worker in observation.workers.items() if worker.busy is not None}
    if len(busy) < 2:
        return None
    hottest = max(busy, key=lambda name: busy[name])
    others = [share for name, share in busy.items() if name != hottest]
    return hottest if busy[hottest] >= HOT and sum(others) / len(others) <= ROOM else None


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
