"""What a placement strategy is given, also as a file, what it returns, and the registry of strategies.

A strategy reads the clock only for its own time-out and draws random numbers only from its seed: the same request gives
the same placement.

A request as a file is a profile: operators with parallelism and per-task loads, and the edges between them,
`{"operators": [{"name", "parallelism", "cpu", "io", "net"}], "edges": [{"from", "to", "kind"}]}`. An operator whose
tasks are not alike has `"groups": [{"tasks", "load": {"cpu", "io", "net"}}]` instead of the three loads. A profile that
`sluice profile` measured also has `pipeline`, `source_rates` and every operator's `costs`, for the simulator.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.errors import BadInputError
from sluice.model import Cluster, Edge, Graph, Operator, Placement, Topology
from sluice.model.base import Count, Frozen, Name, NonNegative, Parallelism
from sluice.model.costs import OperatorCosts
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
        default_factory=dict,
        description="skewed operators: their tasks by weight; `loads` are for strategies that know no groups",
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


class ProfiledOperator(Frozen):
    name: Name
    parallelism: Parallelism
    cpu: NonNegative = 0.0
    io: NonNegative = 0.0
    net: NonNegative = 0.0
    groups: tuple[TaskGroup, ...] = ()
    costs: OperatorCosts | None = None


class Profile(Frozen):
    operators: tuple[ProfiledOperator, ...] = Field(min_length=1)
    edges: tuple[Edge, ...] = ()
    pipeline: Name | None = Field(None, description="what was measured")
    paced: bool | None = Field(None, description="whether slots were held to a rate")
    source_rates: dict[Name, NonNegative] = Field(
        default_factory=dict, description="source operator -> records/s at which the loads were computed: load 1"
    )

    @model_validator(mode="after")
    def _is_a_dag(self) -> Self:
        Topology.of((op.name for op in self.operators), (edge.ends for edge in self.edges))
        return self

    def renamed(self, prefix: str) -> Profile:
        """The same profile with every operator's name behind a prefix."""
        return Profile(
            operators=tuple(op.model_copy(update={"name": prefix + op.name}) for op in self.operators),
            edges=tuple(
                edge.model_copy(update={"source": prefix + edge.source, "target": prefix + edge.target})
                for edge in self.edges
            ),
        )

    def request(
        self, cluster: Cluster, *, present: Placement | None = None, pinned: Placement | None = None
    ) -> PlacementRequest:
        data = {
            "graph": {"operators": [Operator(name=op.name) for op in self.operators], "edges": self.edges},
            "parallelism": {op.name: op.parallelism for op in self.operators},
            "cluster": cluster,
            "loads": {op.name: TaskLoad(cpu=op.cpu, io=op.io, net=op.net) for op in self.operators if not op.groups},
            "groups": {op.name: op.groups for op in self.operators if op.groups},
            "present": present,
            "pinned": pinned,
        }
        return PlacementRequest.parse(data, "profile")


def together(profiles: Sequence[Profile], names: Sequence[str]) -> Profile:
    """Several queries as one, so that they are placed with regard to each other (CAPSys 6.2.2).

    Where operators of different queries have the same name, every operator gets its query's name in front.
    """
    operators = [op.name for profile in profiles for op in profile.operators]
    if len(set(operators)) < len(operators) and len(profiles) > 1:
        profiles = [profile.renamed(f"{name}.") for profile, name in zip(profiles, names, strict=True)]
    return Profile(
        operators=tuple(op for profile in profiles for op in profile.operators),
        edges=tuple(edge for profile in profiles for edge in profile.edges),
    )


def read_profile(path: Path) -> Profile:
    return Profile.parse(read_json(path), str(path))


def read_placement(path: Path) -> Placement:
    """A placement as `{worker: {operator: tasks}}`, or the whole answer of `sluice place --json`."""
    data = read_json(path)
    if isinstance(data, dict) and "placement" in data:
        data = data["placement"]
    return Placement.parse({"tasks": data}, str(path))


def read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInputError(f"{path} is not JSON: {error}") from error


placers: Registry[Placer] = Registry("placement strategy", "sluice.placement", extra="placement")
placer = placers.register
