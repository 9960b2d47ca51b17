"""What a placement strategy is given, what it returns, and the registry of strategies.

A strategy reads the clock only for its own time-out and draws random numbers only from its seed: the same request gives
the same placement.
"""

from __future__ import annotations

from typing import Protocol

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.model import Cluster, Graph, Placement
from sluice.model.base import Count, Frozen, Name, NonNegative, Parallelism
from sluice.registry import Registry


class TaskLoad(Frozen):
    """What one task needs of its worker, in the units of the workers' capacities (any, where those are unlimited)."""

    cpu: NonNegative = 0.0
    io: NonNegative = Field(0.0, description="state bytes read and written per second")
    net: NonNegative = Field(0.0, description="bytes emitted per second, all successors together")


class TaskGroup(Frozen):
    """Some tasks of a skewed operator that are equally heavy; its other tasks form other groups."""

    tasks: Parallelism
    load: TaskLoad


class Costs(Frozen):
    """Imbalance per dimension: 0 for a perfectly even cluster, 1 for the heaviest worker possible (CAPSys, eq. 4)."""

    cpu: NonNegative
    io: NonNegative
    net: NonNegative


class PlacementRequest(Frozen):
    """Everything a strategy may read. Several jobs are placed together as the union of their graphs."""

    graph: Graph
    parallelism: dict[Name, Parallelism]
    cluster: Cluster
    loads: dict[Name, TaskLoad] = Field(default_factory=dict, description="per task; operators left out weigh nothing")
    groups: dict[Name, tuple[TaskGroup, ...]] = Field(
        default_factory=dict, description="skewed operators: their tasks by weight, instead of an entry in `loads`"
    )
    present: Placement | None = Field(None, description="where tasks are now; equal plans are decided by fewest moves")
    pinned: Placement | None = Field(None, description="tasks that must stay where they are")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        names = set(self.graph.names)
        for what, named in (("parallelism", self.parallelism), ("loads", self.loads), ("groups", self.groups)):
            if unknown := sorted(set(named) - names):
                raise ValueError(f"{what} names {unknown[0]!r}, which is no operator; operators: {', '.join(names)}")
        if missing := [name for name in self.graph.names if name not in self.parallelism]:
            raise ValueError(f"parallelism of {missing[0]!r} is missing")
        for name, groups in self.groups.items():
            if (tasks := sum(group.tasks for group in groups)) != self.parallelism[name]:
                raise ValueError(f"groups of {name!r} have {tasks} tasks, its parallelism is {self.parallelism[name]}")
        workers = {worker.name: worker.slots for worker in self.cluster.workers}
        for worker, counts in (self.pinned.tasks if self.pinned else {}).items():
            if worker not in workers:
                raise ValueError(f"pinned names {worker!r}, which is no worker; workers: {', '.join(workers)}")
            if sum(counts.values()) > workers[worker]:
                raise ValueError(f"{sum(counts.values())} tasks are pinned to {worker!r} with {workers[worker]} slots")
        for operator, tasks in (self.pinned.parallelism if self.pinned else {}).items():
            if tasks > self.parallelism.get(operator, 0):
                raise ValueError(
                    f"{tasks} tasks of {operator!r} are pinned, it has {self.parallelism.get(operator, 0)}"
                )
        return self

    @property
    def tasks(self) -> int:
        return sum(self.parallelism.values())


class PlacementResult(Frozen):
    """`placement` is null if the slots do not suffice, or if no plan keeps the given thresholds."""

    placement: Placement | None
    costs: Costs | None = None
    thresholds: Costs | None = Field(None, description="limits the search kept to; null for strategies without any")
    explored: Count = Field(0, description="search nodes, moves or solver branches looked at")
    elapsed_s: NonNegative = 0.0
    gap: NonNegative | None = Field(
        None, description="by how much the sum of costs can fall at most; 0: proven best, null: not determined"
    )
    moved: Count | None = Field(None, description="tasks that change their worker, where a present placement is known")
    reason: str = Field(min_length=1)

    @staticmethod
    def no_room(request: PlacementRequest) -> PlacementResult:
        """The same result from every strategy when slots are short."""
        return PlacementResult(
            placement=None, reason=f"{request.tasks} tasks need slots, the cluster has {request.cluster.slots}"
        )

    @property
    def feasible(self) -> bool:
        return self.placement is not None


class Placer(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the parameters."""

    def place(self, request: PlacementRequest) -> PlacementResult:
        """Every task gets a slot, or the reason says why not."""
        ...


placers: Registry[Placer] = Registry("placement strategy", "sluice.placement", extra="placement")
placer = placers.register
