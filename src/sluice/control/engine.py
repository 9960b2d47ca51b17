"""What the control loop needs from whatever runs the job. Engines hold all the effects."""

from __future__ import annotations

from typing import Protocol

from sluice.model import Graph, Observation, Outcome, Target
from sluice.model.base import Count, Frozen, NonNegative


class RecordCount(Frozen):
    """Records counted end to end when a run is over; null: this engine cannot know."""

    arrived: Count
    processed: Count
    waiting: Count
    lost: Count | None
    duplicated: Count | None
    downtime_s: NonNegative = 0.0


class Clock(Protocol):
    """Engine time in seconds since `start`: simulated or real."""

    def now_s(self) -> float: ...

    def sleep_s(self, duration_s: float) -> None:
        """Let engine time pass. On a simulator this is what makes anything happen."""
        ...


class Engine(Protocol):
    """Assumes: calls come from one thread, `start` first, `stop` last and always."""

    @property
    def graph(self) -> Graph: ...

    @property
    def clock(self) -> Clock: ...

    def start(self, plan: Target) -> None: ...

    def observe(self) -> Observation:
        """What happened since the last call (or since `start`)."""
        ...

    def apply(self, plan: Target) -> Outcome:
        """Change only what differs from the running plan. On failure keep the old plan and say so in `error`."""
        ...

    def stop(self) -> RecordCount:
        """End at a clean boundary; safe to call twice."""
        ...
