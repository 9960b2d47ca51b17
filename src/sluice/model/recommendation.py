"""What a policy wishes, and what is done about it."""

from __future__ import annotations

from pydantic import Field

from sluice.model.base import Count, Finite, Frozen, Name, NonNegative, Parallelism
from sluice.model.cluster import Placement

InstanceMix = dict[Name, Count]
"""Size name -> number of instances of that size."""


class Recommendation(Frozen):
    """A policy's wish, and the sentence that explains it with its numbers.

    Operators that are not named keep what they have; naming none is holding.
    """

    parallelism: dict[Name, Parallelism] = Field(default_factory=dict)
    reason: str = Field(min_length=1)
    sizes: dict[Name, InstanceMix] = Field(default_factory=dict)
    measures: dict[str, Finite] = Field({}, description="numbers worth keeping in the journal, such as a regret")

    @staticmethod
    def hold(reason: str, measures: dict[str, float] | None = None) -> Recommendation:
        return Recommendation(reason=reason, measures=measures or {})

    @property
    def is_hold(self) -> bool:
        return not self.parallelism and not self.sizes


class Target(Frozen):
    """What the engine is to run: complete, guarded and placed."""

    parallelism: dict[Name, Parallelism]
    sizes: dict[Name, InstanceMix] = Field(default_factory=dict)
    placement: Placement | None = None
    notes: tuple[str, ...] = Field((), description="what guards and placement changed, one sentence each")

    @property
    def slots(self) -> int:
        return sum(self.parallelism.values())


class Outcome(Frozen):
    """What became of a plan. `error` set means the old plan still runs."""

    changed: dict[Name, tuple[int, int]] = Field(
        default_factory=dict, description="operator -> instances before and after"
    )
    downtime_s: NonNegative = Field(0.0, description="longest time an operator stood still for it")
    detail: str | None = None
    error: str | None = None
