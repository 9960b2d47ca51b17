"""What a policy is: an observation and its own memory in, a recommendation and the new memory out.

No clock, no I/O, no Spark. Time is `observation.time_s`; chance, where needed, comes from a seed parameter and
a counter kept in memory. Memory is plain JSON data: a policy never changes the one it is given, it returns a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Protocol

from sluice.model import Observation, Recommendation
from sluice.registry import Registry

Memory = Mapping[str, Any]
EMPTY_MEMORY: Memory = {}


class Policy(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the parameters.

    Two class attributes are optional: `decides_during_cooldown = False` where the windows of a cooldown would mislead
    the policy, and `recommends_sizes = True` where it recommends sizes of instances, not only their number.
    """

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        """The recommendation for the next window. A policy may raise; the loop then holds and records why."""
        ...


policies: Registry[Policy] = Registry("policy", "sluice.policies", extra="learning", one_per_file=True)
policy = policies.register


DEFAULT_POLICY = "sluice"
OBJECTIVE = "objective_s"
"""The parameter of a policy that aims at a latency."""


def create_aiming(name: str, settings: Mapping[str, Any] | None, objective_s: float | None) -> Policy:
    """A policy by its name; one that aims at a latency gets the run's objective, unless its settings have another."""
    given = dict(settings or {})
    if objective_s is not None and OBJECTIVE in {field.name for field in fields(policies.get(name))}:  # type: ignore[arg-type]
        given = {OBJECTIVE: objective_s, **given}
    return policies.create(name, given)


def decides_during_cooldown(policy: Policy) -> bool:
    """Whether the policy sees the windows of a cooldown, though none of its recommendations is applied; most do.

    Those windows show the restart and the catching up after it rather than the load. A policy that recommends the
    largest of some minutes would act on them when the cooldown ends.
    """
    return bool(getattr(policy, "decides_during_cooldown", True))


def bounded(policy: Policy, most: int | None) -> Policy:
    """A policy that leaves its largest parallelism open (`max_parallelism` is None) with what the guards allow."""
    if most is None or getattr(policy, "max_parallelism", 0) is not None:
        return policy
    return replace(policy, max_parallelism=most)  # type: ignore[type-var]


def recommends_sizes(policy: Policy) -> bool:
    """Whether it recommends sizes of instances; an engine that cannot apply sizes refuses such a policy."""
    return bool(getattr(policy, "recommends_sizes", False))
