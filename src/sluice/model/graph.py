"""The job as it was written: operators and the edges between them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.model.base import Frozen, Name, Parallelism
from sluice.model.topology import Topology

EdgeKind = Literal["forward", "hash", "rebalance"]


class Operator(Frozen):
    """One step of a job, run by a number of identical instances."""

    name: Name
    stateful: bool = False
    min_parallelism: Parallelism = 1
    max_parallelism: Parallelism | None = None
    bound_by: str | None = None
    """Where something outside of sluice sets the bounds: what that is, for the reasons of targets."""

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.max_parallelism is not None and self.max_parallelism < self.min_parallelism:
            raise ValueError(
                f"operator {self.name!r}: max_parallelism must be at least min_parallelism "
                f"({self.min_parallelism}), got {self.max_parallelism}"
            )
        return self


class Edge(Frozen):
    """Records flow from one operator to another.

    `share` is the part of the emitting operator's output that takes this edge: 1 on every edge of a fan-out
    means each successor gets a copy, shares that sum to 1 mean the output is split. A `forward` edge links
    task k with task k; `hash` and `rebalance` edges link every task with every task downstream.
    """

    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    kind: EdgeKind = "hash"
    share: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 1.0

    @property
    def ends(self) -> tuple[str, str]:
        return (self.source, self.target)


class Graph(Frozen):
    """A directed acyclic graph of operators; operators without predecessors are the sources."""

    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...] = ()
    shared: bool = Field(False, description="all operators run on the same instances, so they have one parallelism")

    @model_validator(mode="after")
    def _is_a_dag(self) -> Self:
        _ = self.topology
        return self

    @property
    def topology(self) -> Topology:
        return Topology.of((op.name for op in self.operators), (edge.ends for edge in self.edges))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(op.name for op in self.operators)

    def __getitem__(self, name: str) -> Operator:
        return next(op for op in self.operators if op.name == name)
