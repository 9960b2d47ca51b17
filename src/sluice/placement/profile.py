"""Profiles as files: operators with parallelism and per-task loads, and the edges between them.

`{"operators": [{"name", "parallelism", "cpu", "io", "net"}], "edges": [{"from", "to", "kind"}]}`. An operator whose
tasks are not alike has `"groups": [{"tasks", "load": {"cpu", "io", "net"}}]` instead of the three loads. A profile that
`sluice profile` measured also has `pipeline`, `source_rates` and every operator's `costs`, for the simulator.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.errors import BadInputError
from sluice.model import Cluster, Edge, Operator, Placement, Topology
from sluice.model.base import Frozen, Name, NonNegative, Parallelism
from sluice.model.costs import OperatorCosts
from sluice.placement.request import PlacementRequest, TaskGroup, TaskLoad


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
