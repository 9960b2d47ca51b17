"""Where instances run: workers, their capacities, instance sizes, and who sits where."""

from __future__ import annotations

import math

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.model.base import Count, Frozen, Name, NonNegative, Parallelism, Positive, Share


class InstanceSize(Frozen):
    """What one instance is given, and what that costs."""

    name: Name
    cpu_cores: Positive
    memory_mb: Positive
    price_per_hour: NonNegative = 0.0


class NodeType(InstanceSize):
    """A size that can be had as a node of a cluster: the tasks it runs at once, and how long it takes to come."""

    slots: Parallelism = Field(1, description="tasks at a time; by default its cores, rounded up")
    start_s: NonNegative = Field(30.0, description="from the request to its first task, until one was measured")

    @model_validator(mode="before")
    @classmethod
    def _slots_of_cores(cls, data: object) -> object:
        if not isinstance(data, dict) or "slots" in data:
            return data
        cores = data.get("cpu_cores")
        if isinstance(cores, int | float) and math.isfinite(cores):
            return {**data, "slots": max(1, math.ceil(cores))}
        return data

    @property
    def size(self) -> InstanceSize:
        return InstanceSize(**{name: getattr(self, name) for name in InstanceSize.model_fields})


class Worker(Frozen):
    """A machine with slots. A capacity of null is unlimited; units are those of the profiles in use."""

    name: Name
    slots: Parallelism
    cpu: Positive | None = None
    io: Positive | None = None
    net: Positive | None = None


class Cluster(Frozen):
    """The workers there are."""

    workers: tuple[Worker, ...]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [worker.name for worker in self.workers]
        if len(set(names)) != len(names):
            raise ValueError(f"worker names must differ, got {names}")
        return self

    @staticmethod
    def uniform(
        workers: int,
        slots: int,
        *,
        cpu: float | None = None,
        io: float | None = None,
        net: float | None = None,
    ) -> Cluster:
        return Cluster(
            workers=tuple(Worker(name=f"w{index}", slots=slots, cpu=cpu, io=io, net=net) for index in range(workers))
        )

    @property
    def slots(self) -> int:
        return sum(worker.slots for worker in self.workers)


class Placement(Frozen):
    """How many tasks of which operator sit on which worker."""

    tasks: dict[Name, dict[Name, Count]]
    heavy: dict[Name, dict[Name, tuple[Share, ...]]] = Field(
        default_factory=dict,
        description="worker -> operator -> share of the operator's work that each task there has which has more than "
        "an even one; all its other tasks are alike",
    )

    @model_validator(mode="after")
    def _heavy_tasks_are_there(self) -> Self:
        for worker, held in self.heavy.items():
            for operator, shares in held.items():
                if len(shares) > (there := self.tasks.get(worker, {}).get(operator, 0)):
                    raise ValueError(f"{len(shares)} tasks of {operator!r} are heavy on {worker!r}, it has {there}")
        return self

    def of(self, operator: str) -> dict[str, int]:
        """Worker -> tasks of this operator, workers without any left out."""
        return {worker: found[operator] for worker, found in self.tasks.items() if found.get(operator)}

    def heavy_of(self, operator: str) -> list[tuple[str, float]]:
        """Worker and share of every heavy task of this operator, heaviest first."""
        found = [(worker, share) for worker, held in self.heavy.items() for share in held.get(operator, ())]
        return sorted(found, key=lambda one: (-one[1], one[0]))

    @property
    def parallelism(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for found in self.tasks.values():
            for operator, count in found.items():
                total[operator] = total.get(operator, 0) + count
        return total
