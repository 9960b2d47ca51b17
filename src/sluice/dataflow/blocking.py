"""Operators that stand still while others work: what that takes from the load a job carries.

A window that fires into a bounded buffer takes in nothing until its burst is taken, and whoever feeds it waits as well.
So the operators before and after it work in turn, and the shares of time they need add up, less the *slack* that the
buffers give:

    load * (time(x) + max(time(y) for y after x)) <= 1 + slack(x)

The slack is seen in any window with backpressure: it is the busy share of the busiest operator after x, less the share
of time for which x was blocked. In a job that flows nobody is blocked before that operator is full, so the slack is
large and takes nothing away; where bursts are larger than buffers it is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sluice.model import Observation, Topology

SPAN = 4
"""Windows that a slack is measured over: one alone may have seen the burst and not the rest."""
LEAST_BLOCKED = 0.05
"""Less is what noise does."""
GAIN = 0.15
FELT = 0.5

Pairs = dict[str, list[float]]
"""Operator -> the share of time it was blocked, and the busy share of the busiest one after it."""


class After(NamedTuple):
    """The operator that needs most time of all that follow one, and how much."""

    time: float
    name: str | None


def busiest_after(topology: Topology, times: Mapping[str, float]) -> dict[str, After]:
    after: dict[str, After] = {}
    for name in reversed(topology.order):
        most = After(0.0, None)
        for follower in topology.successors[name]:
            further, own = after[follower], times.get(follower, 0.0)
            if own > most.time:
                most = After(own, follower)
            if further.time > most.time:
                most = further
        after[name] = most
    return after


def longest_time(topology: Topology, times: Mapping[str, float], slack: Mapping[str, float]) -> float:
    """Seconds per record of the operator that needs most of them, its waiting for others included."""
    most = max(times.values())
    if slack:
        after = longest_after(topology, times)
        for name, share in slack.items():
            if name in times:
                waiting = (times[name] + after[name]) / (1 + share)
                if waiting > most:
                    most = waiting
    return most


def longest_after(topology: Topology, times: Mapping[str, float]) -> dict[str, float]:
    """As `busiest_after` without the names: asked for every configuration, so it makes no objects."""
    followers = topology.followers
    after: list[float] = []
    reach: list[float] = []
    own_time = times.get
    for name, places in followers.items():
        most = 0.0
        for place in places:
            further = reach[place]
            if further > most:
                most = further
        after.append(most)
        own = own_time(name, 0.0)
        reach.append(own if own > most else most)
    return dict(zip(followers, after, strict=True))


@dataclass(frozen=True)
class Blocking:
    """`slack` of the operators that were ever seen blocked; `recent` are the last windows."""

    recent: tuple[Pairs, ...] = ()
    slack: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def from_memory(stored: Mapping[str, Any]) -> Blocking:
        return Blocking(tuple(stored.get("recent", ())), stored.get("slack", {}))

    def to_memory(self) -> dict[str, Any]:
        return {"recent": list(self.recent), "slack": dict(self.slack)}

    def learned(self, observation: Observation, busy: Mapping[str, float]) -> Blocking:
        """With one more window of a job at work; `busy` are shares of what an operator shows at its limit."""
        topology = observation.topology
        after, successors = longest_after(topology, busy), topology.successors
        window = {
            name: [metrics.backpressure, after[name]]
            for name, metrics in observation.operators.items()
            if metrics.backpressure is not None and successors[name]
        }
        recent = (*self.recent, window)[-SPAN:]
        slack = {name: share for name, share in self.slack.items() if name in observation.operators}
        if len(recent) == SPAN:
            earlier = recent[:-1]
            for name, (blocked, work) in window.items():
                seen = 1
                for one in earlier:
                    if pair := one.get(name):
                        blocked += pair[0]
                        work += pair[1]
                        seen += 1
                if blocked >= LEAST_BLOCKED * seen:
                    left = max(0.0, (work - blocked) / seen)
                    slack[name] = slack[name] + GAIN * (left - slack[name]) if name in slack else left
                elif name in slack:
                    slack[name] = max(slack[name], work / seen)
        return Blocking(recent, slack)

    @property
    def is_felt(self) -> bool:
        """Whether somebody waits for work that does not fill the one who does it."""
        return any(share < FELT for share in self.slack.values())

    def interrupted(self) -> Blocking:
        """The job stood still or changed: what came just before is left out."""
        return replace(self, recent=())
