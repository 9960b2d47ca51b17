"""What placing is: a request (who needs slots, how heavy, on which workers) in, a placement with its costs out.

Adding a strategy is adding a file with a registered dataclass. A strategy reads no clock but to honour its own
time-out, and draws no chance but from its seed: the same request gives the same placement.
"""

from __future__ import annotations

from typing import Protocol, Self

from pydantic import Field, model_validator

from sluice.model import Cluster, Graph, Placement
from sluice.model.base import Count, Frozen, Name, NonNegative, Parallelism
from sluice.registry import Registry


class TaskLoad(Frozen):
    """What one task asks of its worker, in the units of the workers' capacities (any, where those are unlimited)."""

    cpu: NonNegative = 0.0
    io: NonNegative = Field(0.0, description="state bytes read and written per second")
    net: NonNegative = Field(0.0, description="bytes emitted per second, all successors together")


class TaskGroup(Frozen):
    """Some tasks of a skewed operator that are equally heavy; its other tasks form other groups."""

    tasks: Parallelism
    load: TaskLoad


class Costs(Frozen):
    """Imbalance per dimension: 0 is a perfectly even cluster, 1 the worst worker that can be (CAPSys, equation 4)."""

    cpu: NonNegative
    io: NonNegative
    net: NonNegative


class PlacementRequest(Frozen):
    """Everything a strategy may look at. Several jobs are placed together by giving the union of their graphs."""

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
        for what, found in (("parallelism", self.parallelism), ("loads", self.loads), ("groups", self.groups)):
            if unknown := sorted(set(found) - names):
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


class Placed(Frozen):
    """A strategy's answer. `placement` is null only where the tasks need more slots than there are."""

    placement: Placement | None
    costs: Costs | None = None
    thresholds: Costs | None = Field(None, description="limits the search kept to; null for strategies without any")
    explored: Count = Field(0, description="search nodes, moves or solver branches looked at")
    elapsed_s: NonNegative = 0.0
    gap: NonNegative | None = Field(
        None, description="by how much the sum of costs can fall at most; 0 is proven best, null where nobody asked"
    )
    moved: Count | None = Field(None, description="tasks that change their worker, where a present placement is known")
    reason: str = Field(min_length=1)

    @staticmethod
    def no_room(request: PlacementRequest) -> Placed:
        """The one answer all strategies give when slots are short."""
        return Placed(
            placement=None, reason=f"{request.tasks} tasks need slots, the cluster has {request.cluster.slots}"
        )

    @property
    def feasible(self) -> bool:
        return self.placement is not None


class Placer(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the parameters."""

    def place(self, request: PlacementRequest) -> Placed:
        """Every task gets a slot, or the answer says why that cannot be."""
        ...


placers: Registry[Placer] = Registry("placement strategy", "sluice.placement", extra="placement")
placer = placers.register
