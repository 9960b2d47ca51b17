"""What a policy is: an observation and its own memory in, a decision and the new memory out.

No clock, no I/O, no Spark. Time is `observation.time_s`; chance, where needed, comes from a seed parameter and
a counter kept in memory. Memory is plain JSON data; what is given in is never changed, a new one is returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sluice.model import Decision, Observation
from sluice.registry import Registry

Memory = Mapping[str, Any]
EMPTY_MEMORY: Memory = {}


class Policy(Protocol):
    """Implemented by frozen keyword-only dataclasses whose fields are the parameters."""

    def decide(self, observation: Observation, memory: Memory) -> tuple[Decision, Memory]:
        """The wish for the next window. Raising is allowed to nobody's harm: the loop holds and records it."""
        ...


policies: Registry[Policy] = Registry("policy", "sluice.policies")
policy = policies.register
