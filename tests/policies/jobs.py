"""Observations in a few words, for the tests of the policies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluice.model import Observation, Recommendation
from sluice.protocol import EMPTY_MEMORY, Policy


def job(*edges: str, time_s: float = 0.0, interval_s: float = 15.0, **operators: dict[str, Any]) -> Observation:
    """`job("a>b", a={"parallelism": 1}, b={...})`"""
    return Observation.model_validate(
        {
            "time_s": time_s,
            "interval_s": interval_s,
            "operators": operators,
            "edges": [edge.split(">") for edge in edges],
        }
    )


def recommended(policy: Policy, observation: Observation) -> dict[str, int]:
    return policy.decide(observation, EMPTY_MEMORY)[0].parallelism


def decisions(policy: Policy, observations: Iterable[Observation]) -> list[Recommendation]:
    """One after the other, memory carried over."""
    memory, made = EMPTY_MEMORY, []
    for observation in observations:
        decision, memory = policy.decide(observation, memory)
        made.append(decision)
    return made
