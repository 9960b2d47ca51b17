"""What a policy recommends, and the sentence that explains it."""

from __future__ import annotations

from pydantic import Field

from sluice.model.base import Count, Finite, Frozen, Name, Parallelism
from sluice.model.learned import Learned

InstanceMix = dict[Name, Count]
"""Size name -> number of instances of that size."""


class Recommendation(Frozen):
    """A policy's recommendation with its reason in one sentence.

    Operators that are not named keep their target; naming none is holding.
    """

    parallelism: dict[Name, Parallelism] = Field(default_factory=dict)
    reason: str = Field(min_length=1)
    sizes: dict[Name, InstanceMix] = Field(default_factory=dict)
    shared_nodes: bool = Field(False, description="operators share the nodes of their sizes: each runs all of them")
    measures: dict[str, Finite] = Field({}, description="numbers worth keeping in the journal, such as a regret")
    learned: Learned | None = Field(None, description="what a policy that learns believes now, for people to look at")

    @staticmethod
    def hold(reason: str, measures: dict[str, float] | None = None) -> Recommendation:
        return Recommendation(reason=reason, measures=measures or {})

    @property
    def is_hold(self) -> bool:
        return not self.parallelism and not self.sizes
