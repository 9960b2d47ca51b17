"""What the control loop needs from whatever runs the job. Engines hold all the effects."""

from __future__ import annotations

from typing import Literal, Protocol

from sluice.journal.records import RecordCount
from sluice.model import Graph, Observation, Reconciliation, Target

Ability = Literal["sizes", "shared_nodes", "placement"]
"""What a target may contain beyond parallelism; an engine without the ability refuses it."""


class Clock(Protocol):
    """Engine time in seconds since `start`: simulated or real. A clock only waits."""

    def now_s(self) -> float: ...

    def sleep_s(self, duration_s: float) -> None:
        """Let engine time pass; may end early when the run is interrupted."""
        ...


class Engine(Protocol):
    """Assumes: calls come from one thread, `start` first, `stop` last and always."""

    @property
    def graph(self) -> Graph:
        """The operators now; those of an application come and go."""
        ...

    @property
    def clock(self) -> Clock: ...

    @property
    def tick_s(self) -> float | None:
        """How often the loop maintains and reconciles between cycles; None: nothing changes by itself."""
        ...

    @property
    def abilities(self) -> frozenset[Ability]: ...

    def start(self, target: Target) -> Target:
        """Begin with this target; the answer is the one in force, which a resumed run brings along."""
        ...

    def observe(self) -> Observation:
        """What happened since the last call (or since `start`)."""
        ...

    def maintain(self) -> tuple[str, ...]:
        """Take samples that cannot wait for `observe`, repair what broke; one sentence for every repair."""
        ...

    def reconcile(self, target: Target) -> Reconciliation:
        """Bring what is there closer to the target: request what differs, and again what got lost.

        Called every cycle and every tick with the target in force, so with nothing to do it must be cheap. An
        operator whose change fails runs on as before, and its `error` says why.
        """
        ...

    def stop(self) -> RecordCount:
        """End at a clean boundary; safe to call twice."""
        ...


def wait(engine: Engine, duration_s: float) -> None:
    """Let engine time pass, the engine maintained as the loop does it."""
    until_s = engine.clock.now_s() + duration_s
    while (left_s := until_s - engine.clock.now_s()) > 0:
        engine.clock.sleep_s(min(engine.tick_s or left_s, left_s))
        engine.maintain()


__all__ = ["Ability", "Clock", "Engine", "RecordCount", "wait"]
