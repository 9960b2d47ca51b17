"""Placement on Spark: the strategy, the capacity of the workers, and when tasks are to be placed anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from sluice.control.loop import Planner, Review
from sluice.errors import BadInputError, SluiceError
from sluice.model import Cluster, Graph, Observation, Placement, Target, WorkerMetrics
from sluice.placement import Placer
from sluice.placement.planner import PlacementPlanner, UnitCosts
from sluice.placement.request import Profile
from sluice.registry import parameter
from sluice.spark.placed.workers import EXPECTED

HOT, ROOM = 0.9, 0.6
"""Loads of a worker that is full, and of others that could take something from it, as shares of what they can do."""
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
    """The strategy that places instances on the workers of a real cluster; `units` come from a profile, if any.

    An elastic placement uses as few workers as the plan has slots for, and counts on more where those there are do not
    suffice.
    """

    placer: Placer
    capacity: WorkerCapacity = field(default_factory=WorkerCapacity)
    units: Mapping[str, UnitCosts] = field(default_factory=dict)
    elastic: bool = False

    def planner(self, cluster: Callable[[], Cluster], review: WorkerReview | None = None) -> Planner:
        costs = PlacementPlanner(placer=self.placer, cluster=cluster, units=self.units, links=False)
        return WorkerPlanner(costs, review, most_workers=len(cluster().workers) if self.elastic else None)

    def review(self, cluster: Callable[[], Cluster], resumed: Placement | None = None) -> WorkerReview:
        most = cluster()
        return WorkerReview(cluster, most_slots=most.slots if self.elastic else None, resumed=resumed)


@dataclass(frozen=True)
class WorkerPlanner:
    """Places on the workers there are; a profile that a hot worker has shown to be wrong is not used any more."""

    planner: PlacementPlanner
    review: WorkerReview | None = None
    most_workers: int | None = None
    """Where executors are requested and released: at most so many; null: all that are there are used."""

    def __call__(
        self, graph: Graph, parallelism: Mapping[str, int], observation: Observation | None, current: Placement | None
    ) -> tuple[Placement, str]:
        planner = self.planner
        if self.review is not None and self.review.surprised:
            planner = replace(planner, units={})
        if self.most_workers is not None:
            needed = needed_workers(planner.workers, sum(parallelism.values()), current, self.most_workers)
            planner = replace(planner, cluster=needed)
        return planner(graph, parallelism, observation, current)


def needed_workers(there: Cluster, instances: int, current: Placement | None, most: int) -> Cluster:
    """Just so many workers that the instances have slots: those that hold most of them now, and some yet to come."""
    largest = max(there.workers, key=lambda worker: worker.slots)
    count = min(most, max(1, math.ceil(instances / largest.slots)))
    held = {name: sum(tasks.values()) for name, tasks in current.tasks.items()} if current else {}
    kept = sorted(there.workers, key=lambda worker: -held.get(worker.name, 0))[:count]
    # a smaller worker among them may leave too few slots
    while sum(worker.slots for worker in kept) < instances and len(kept) < min(most, len(there.workers)):
        kept = sorted(there.workers, key=lambda worker: -held.get(worker.name, 0))[: len(kept) + 1]
    coming = [largest.model_copy(update={"name": f"{EXPECTED}{number}"}) for number in range(1, count - len(kept) + 1)]
    return Cluster(workers=(*sorted(kept, key=lambda worker: worker.name), *coming))


def units_of(profile: Profile, operators: Collection[str]) -> dict[str, UnitCosts]:
    """What profiling measured per record; operators whose costs are unknown are observed instead.

    Bad input if it is the profile of other operators, or has nothing that was measured. A query may be a chain of
    operators, with all their names.
    """
    known = [op.name for op in profile.operators]
    if not all(part in operators for name in known for part in name.split("+")):
        raise BadInputError(
            f"the profile has operators {', '.join(sorted(known))}, the pipeline {', '.join(sorted(operators))}"
        )
    if all(op.costs is None for op in profile.operators):
        raise BadInputError("the profile has no costs per record; 'sluice profile' measures them")
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

    A hot worker shows contention that the costs did not predict; from then on the strategy uses those observed. After
    that it gets `QUIET_WINDOWS` to show what came of it. Without placement only the slots there are matter.
    """

    cluster: Callable[[], Cluster]
    places: bool = True
    most_slots: int | None = None
    """Where executors are requested and released: the slots there can be; null: those there are."""
    resumed: Placement | None = None
    """What a run that goes on had when it ended: its workers may be gone since."""
    surprised: bool = False
    """Whether a worker got hot that the costs had not predicted."""
    _placed_on: Cluster | None = None
    _hot: str | None = None
    _hot_windows: int = 0
    _quiet_windows: int = 0

    def __call__(self, observation: Observation, target: Target) -> Review:
        now = self.cluster()
        if not self.places:
            return Review(now.slots)
        slots = max(now.slots, self.most_slots or 0)
        before, self._placed_on = self._placed_on or now, now
        changed = changes(before, now)
        if self.most_slots is not None and not self._matters(before, now, target):
            changed = None
        gone = self._gone_since(now)
        return Review(slots, changed or gone or self._heat(observation))

    def _gone_since(self, now: Cluster) -> str | None:
        """The workers that an earlier run had instances on and this one has not found; said once."""
        resumed, self.resumed = self.resumed, None
        held = [name for name, tasks in resumed.tasks.items() if tasks] if resumed else []
        there = {worker.name for worker in now.workers}
        gone = [f"worker {name} is gone" for name in held if name not in there and not name.startswith(EXPECTED)]
        return ", ".join(gone) or None

    @staticmethod
    def _matters(before: Cluster, now: Cluster, target: Target) -> bool:
        """Whether instances were on a worker that is gone, or wait for one that has come."""
        held = {name for name, tasks in target.placement.tasks.items() if tasks} if target.placement else set()
        there = {worker.name for worker in now.workers}
        gone = {worker.name for worker in before.workers} - there
        return bool(held & gone) or any(name.startswith(EXPECTED) for name in held)

    def _heat(self, observation: Observation) -> str | None:
        hot = hot_worker(observation)
        self._hot_windows = self._hot_windows + 1 if hot is not None and hot == self._hot else int(hot is not None)
        self._hot = hot
        self._quiet_windows = max(0, self._quiet_windows - 1)
        if hot is None or self._hot_windows < HOT_WINDOWS or self._quiet_windows:
            return None
        self._hot_windows, self._quiet_windows, self.surprised = 0, QUIET_WINDOWS, True
        load = worker_load(observation.workers[hot])
        return f"worker {hot} was {load:.0%} busy for {HOT_WINDOWS} windows, others have room"


def hot_worker(observation: Observation) -> str | None:
    """The busiest worker, if it is nearly full and the others together are far from it."""
    loads = {name: load for name, one in observation.workers.items() if (load := worker_load(one)) is not None}
    if len(loads) < 2:
        return None
    hottest = max(loads, key=lambda name: loads[name])
    others = [share for name, share in loads.items() if name != hottest]
    return hottest if loads[hottest] >= HOT and sum(others) / len(others) <= ROOM else None


def worker_load(worker: WorkerMetrics) -> float | None:
    """The share of its slots or of its cores that a worker uses, whichever is larger; null if neither is known."""
    cores = worker.cpu / worker.cpu_capacity if worker.cpu is not None and worker.cpu_capacity else None
    return max((share for share in (worker.busy, cores) if share is not None), default=None)


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
