"""Which policies make sense on executors that all queries of an application share. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.errors import BadInputError
from sluice.model import Observation, Recommendation
from sluice.protocol import Memory, Policy, decides_during_cooldown

INSTEAD = "use ds2"
NEVER = {"random-search": "it tries numbers of executors at random on a job that works; it is a baseline for benches"}
ONE_QUERY = {
    "conttune": "it learns what a query can do with so many executors, which other queries on them change",
    "dragster": "it learns the capacity of operators with instances of their own; its paper excludes shared ones",
    "qescalor": "it plans every operator's instances ahead on its own, and shared executors have one number",
}
"""Policies that learn or plan per operator: one query is one operator with all executors to itself."""


def check_suitable(name: str, queries: int) -> None:
    if name in NEVER:
        raise BadInputError(f"policy {name!r} is not for attach: {NEVER[name]}; {INSTEAD}")
    if name in ONE_QUERY and queries > 1:
        raise BadInputError(
            f"policy {name!r} is for applications of one query, this one runs {queries}: {ONE_QUERY[name]}; {INSTEAD}"
        )


@dataclass(frozen=True, kw_only=True)
class OneQuery:
    """Asks the inner policy while one query runs; with more it fails, and so holds with the reason on record."""

    inner: Policy
    name: str

    @property
    def decides_during_cooldown(self) -> bool:
        return decides_during_cooldown(self.inner)

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        check_suitable(self.name, len(observation.operators))
        return self.inner.decide(observation, memory)
