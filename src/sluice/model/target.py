"""Target, requested and observed: what is to run, what an engine has requested for it, and what is running."""

from __future__ import annotations

from pydantic import Field, model_validator
from typing_extensions import Self

from sluice.model.base import Count, Frozen, Name, NonNegative, Parallelism
from sluice.model.cluster import Placement
from sluice.model.recommendation import InstanceMix


class Target(Frozen):
    """What is to run: complete, guarded and placed. An operator's sizes add up to its parallelism."""

    parallelism: dict[Name, Parallelism]
    sizes: dict[Name, InstanceMix] = Field(default_factory=dict)
    shared_nodes: bool = Field(False, description="an instance shares its node with one of every other operator")
    placement: Placement | None = None

    @model_validator(mode="after")
    def _sizes_add_up(self) -> Self:
        for name, mix in self.sizes.items():
            instances = self.parallelism.get(name)
            if sum(mix.values()) != instances:
                raise ValueError(f"operator {name!r} has {instances} instances, but its sizes add up to {mix}")
        return self

    @property
    def slots(self) -> int:
        return sum(self.parallelism.values())


class OperatorChange(Frozen):
    """One operator's part of an action. With `error` set it runs on as before."""

    before: Count
    requested: Count
    error: str | None = None


class Reconciliation(Frozen):
    """What an engine did about a target in one call, and where that leaves it.

    `requested` is what the engine has requested so far, `observed` what is there now: a cluster may be slow, or full.
    `changes` has the operators this call acted on.
    """

    requested: dict[Name, Count]
    observed: dict[Name, Count]
    sizes: dict[Name, InstanceMix] = Field(default_factory=dict, description="what is there, of an engine with sizes")
    changes: dict[Name, OperatorChange] = Field(default_factory=dict)
    downtime_s: NonNegative = Field(0.0, description="longest time an operator stood still for it")
    detail: str | None = None
