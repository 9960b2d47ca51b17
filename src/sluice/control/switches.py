"""What a person may ask of a running loop from another thread: pause, resume, dry run, pin, change the policy.

Requests are checked and queued where they are made, and applied by the loop at its next cycle, each on record first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluice.control.decider import Decider
from sluice.errors import BadInputError
from sluice.journal.records import Choice, Control

MOST_WAITING = 100
"""Requests that wait for one cycle."""
NO_LOOP = "no loop takes controls: the run has not begun or is over"


@dataclass(frozen=True, kw_only=True)
class ControlRequest:
    """One use of a control; a change of policy brings who is to be asked."""

    control: Control
    operator: str | None = None
    parallelism: int | None = None
    policy: Choice | None = None
    on: bool | None = None
    decider: Decider | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class Overrides:
    """What is in force by the hand of a person."""

    paused: bool = False
    dry_run: bool = False
    pinned: Mapping[str, int] = field(default_factory=dict)
    policy: Choice | None = None
    """Who decides, if that was changed."""

    def after(self, request: ControlRequest) -> Overrides:
        match request.control:
            case "pause" | "resume":
                return replace(self, paused=request.control == "pause")
            case "dry_run":
                return replace(self, dry_run=bool(request.on))
            case "pin":
                return replace(self, pinned={**self.pinned, str(request.operator): request.parallelism or 1})
            case "unpin":
                return replace(self, pinned={n: count for n, count in self.pinned.items() if n != request.operator})
            case "policy":
                return replace(self, policy=request.policy)

    def to_data(self) -> dict[str, Any]:
        """For people to look at; lists, because names of operators are anybody's text."""
        return {
            "paused": self.paused,
            "dry_run": self.dry_run,
            "pinned": [{"operator": name, "parallelism": count} for name, count in self.pinned.items()],
            "policy": self.policy.label if self.policy else None,
        }


class Switchboard:
    """The thread-safe meeting point of those who ask and the loop that applies.

    `decider_for` builds who is to be asked of a policy's name and settings, and refuses what this loop cannot use.
    """

    def __init__(self, decider_for: Callable[[str, Mapping[str, Any]], Decider] | None = None) -> None:
        self._decider_for = decider_for
        self._lock = threading.Lock()
        self._waiting: list[ControlRequest] = []
        self._overrides = Overrides()
        self._operators: tuple[str, ...] | None = None

    def ask(
        self,
        control: Control,
        *,
        operator: str | None = None,
        parallelism: int | None = None,
        policy: Choice | None = None,
        on: bool | None = None,
    ) -> None:
        """Queue one use, in force from the next cycle; what makes no sense is refused here, in one line."""
        request = ControlRequest(control=control, operator=operator, parallelism=parallelism, policy=policy, on=on)
        with self._lock:
            operators = self._operators
        if operators is None:
            raise BadInputError(NO_LOOP)
        self._check(request, operators)
        if control == "policy" and policy is not None:
            if self._decider_for is None:
                raise BadInputError("this loop cannot change its policy")
            request = replace(request, decider=self._decider_for(policy.name, policy.settings))
        with self._lock:
            if self._operators is None:
                raise BadInputError(NO_LOOP)
            if len(self._waiting) >= MOST_WAITING:
                raise BadInputError(f"{MOST_WAITING} requests wait for the next cycle already; wait for it, too")
            self._waiting.append(request)

    @staticmethod
    def _check(request: ControlRequest, operators: tuple[str, ...]) -> None:
        if request.control in ("pin", "unpin") and request.operator not in operators:
            raise BadInputError(f"unknown operator {request.operator!r}; known: {', '.join(operators)}")
        if request.control == "pin" and (request.parallelism is None or request.parallelism < 1):
            raise BadInputError(f"pin needs a parallelism of at least 1, got {request.parallelism}")
        if request.control == "dry_run" and request.on is None:
            raise BadInputError("dry_run needs on: true or false")
        if request.control == "policy" and request.policy is None:
            raise BadInputError("policy needs the name of one")

    @property
    def state(self) -> dict[str, Any]:
        """What is in force, how much waits for the next cycle, and whether a loop is there at all."""
        with self._lock:
            return {
                **self._overrides.to_data(),
                "waiting": len(self._waiting),
                "connected": self._operators is not None,
            }

    def take(self, operators: tuple[str, ...]) -> list[ControlRequest]:
        """By the loop: what was asked since the last call."""
        with self._lock:
            taken, self._waiting, self._operators = self._waiting, [], operators
        return taken

    def show(self, overrides: Overrides) -> None:
        """By the loop: what is in force now."""
        with self._lock:
            self._overrides = overrides

    def close(self) -> list[ControlRequest]:
        """By the loop, at its end: what nobody will apply any more."""
        with self._lock:
            left, self._waiting, self._operators = self._waiting, [], None
        return left
