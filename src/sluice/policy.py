"""What a policy is: an observation and its own memory in, a decision and the new memory out.

No clock, no I/O, no Spark. Time is `observation.time_s`; chance, where needed, comes from a seed parameter and
a counter kept in memory. Memory is plain JSON data; what is given in is never changed, a new one is returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sluice.model import Observation, Recommendation
from sluice.registry import Registry

Memory = Mapping[str, Any]
EMPTY_MEMORY: Memory = {}


class Policy(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the parameters.

    A class attribute `asked_while_cooling = False` says that windows within a cool-down would mislead it.
    """

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        """The wish for the next window. Raising is allowed to nobody's harm: the loop holds and records it."""
        ...


policies: Registry[Policy] = Registry("policy", "sluice.policies", extra="learning", one_per_file=True)
policy = policies.register


def asked_while_cooling(policy: Policy) -> bool:
    """Whether the policy wants to see the windows of a cool-down, though it cannot act in them; most do.

    They show the restart and the catching up after it rather than the load. One that keeps its largest wish of some
    minutes would act on them when the cool-down ends.
    """
    return bool(getattr(policy, "asked_while_cooling", True))
