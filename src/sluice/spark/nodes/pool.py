"""As many nodes of every type as are wanted: started, measured, drained and stopped, and started again when lost.

Providers may take a minute for an answer, so they are called in threads; `tick` collects the answers. A type whose
start failed or is overdue is not available for a while, which doubles every time; whoever plans does without it. A node
that never joins is stopped, and another one may be requested.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sluice.errors import SluiceError
from sluice.model import NodeType, NodeTypeMetrics
from sluice.spark.nodes.provider import NodeProvider, WorkerNode, one_line, pause_s
from sluice.spark.nodes.stopping import Stopping

FIRST_PAUSE_S = 30.0
LEAST_PATIENCE_S = 60.0
OVERDUE = 3.0
"""Times the usual start-up time: then a node that was started has not come in time."""
GIVEN_UP = 2.0
"""Times as long: then it is stopped."""
LIST_EVERY_S = 2.0
ABSENT_S = 30.0
MOST_AT_ONCE = 32
"""Calls of the provider: some that hang must not hold up the others."""


class Drain(Protocol):
    """Whether a node that is to go has nothing to do any more; called every tick until it says so."""

    def __call__(self, node: WorkerNode) -> bool: ...


@dataclass
class _Start:
    """A node that was requested; `node` once the provider has answered."""

    type: str
    since_s: float
    answer: Future[WorkerNode]
    node: WorkerNode | None = None
    is_first: bool = False
    """Begun before Spark was: how long it takes says nothing of others."""


@dataclass
class _Listing:
    """`known` are the nodes there were when it began: it says nothing of others."""

    known: frozenset[str]
    answer: Future[Sequence[WorkerNode]]


@dataclass
class _Availability:
    start_s: float
    failures: int = 0
    failed_s: float = float("-inf")
    until_s: float = 0.0


@dataclass
class NodePool:
    """Called by one thread. `now_s` and `executor` are for tests; `most` bounds all nodes together."""

    provider: NodeProvider
    most: int | None = None
    now_s: Callable[[], float] = time.monotonic
    executor: Executor = field(default_factory=lambda: ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="nodes"))

    def __post_init__(self) -> None:
        self.types: dict[str, NodeType] = {one.name: one for one in self.provider.types()}
        self._known = {name: _Availability(one.start_s) for name, one in self.types.items()}
        self._starts: list[_Start] = []
        self.ready: dict[str, WorkerNode] = {}
        """By name: nodes whose executor has come, those that drain left out."""
        self.draining: dict[str, WorkerNode] = {}
        self._stopping = Stopping(self.provider, self.executor, self.now_s)
        self._listing: _Listing | None = None
        self._listed_s = float("-inf")
        self._list_problem: str | None = None
        self._events: list[str] = []
        self._absent_since_s: dict[str, float] = {}

    def begin(self, counts: Mapping[str, int]) -> None:
        """The first nodes; whatever keeps one of them from starting is raised: there is nothing to run on without.

        Nodes that a run which was killed has left behind are used, those of other types stopped.
        """
        left = dict(counts)
        for node in _answered(self.provider.list, "the nodes there are cannot be listed"):
            if left.get(node.type, 0) > 0:
                left[node.type] -= 1
                known: Future[WorkerNode] = Future()
                known.set_result(node)
                self._starts.append(_Start(node.type, self.now_s(), known))
            else:
                self._stopping.add(node)
        for name, count in left.items():
            for _ in range(count):
                if not self._try_start(name):
                    raise SluiceError(f"{sum(counts.values())} nodes are needed to begin with, {self.most} are allowed")
        for start in self._starts:
            start.is_first = True
            start.node = _answered(start.answer.result, f"node of type {start.type!r} did not start")

    def reconcile(self, missing: Mapping[str, int], release: Collection[str] = ()) -> None:
        """Request nodes until so many of every type are to come; drain those that the caller gives nothing to do."""
        for name in release:
            if (node := self.ready.pop(name, None)) is not None:
                self.draining[name] = node
                self._events.append(f"node {name} drains: no instance is on it")
        for name, count in missing.items():
            for _ in range(count - self.coming(name)):
                if not self._try_start(name):
                    break

    def coming(self, type_name: str) -> int:
        """Nodes of a type that were requested and have not joined."""
        return sum(start.type == type_name for start in self._starts)

    def paid(self, type_name: str) -> int:
        """Those that somebody pays for: from the provider's answer until it has stopped them."""
        nodes = [*self.ready.values(), *self.draining.values(), *self._stopping.nodes]
        nodes += [start.node for start in self._starts if start.node is not None]
        return sum(node.type == type_name for node in nodes)

    @property
    def is_releasing(self) -> bool:
        return bool(self.draining or self._stopping.nodes)

    def is_available(self, type_name: str) -> bool:
        return self.now_s() >= self._known[type_name].until_s

    def metrics(self) -> dict[str, NodeTypeMetrics]:
        return {
            name: NodeTypeMetrics(
                nodes=self.paid(name),
                price_per_hour=kind.price_per_hour,
                start_s=self._known[name].start_s,
                available=self.is_available(name),
                coming=self.coming(name),
            )
            for name, kind in self.types.items()
        }

    def tick(self, hosts: Collection[str], is_drained: Drain) -> tuple[str, ...]:
        """`hosts` are those of the executors there are; a sentence for everything that happened."""
        self._collect_starts(hosts)
        self._events += self._stopping.tick()
        self._find_lost()
        self._find_absent(hosts)
        for name, node in list(self.draining.items()):
            if node.host not in hosts or is_drained(node):
                self._stopping.add(self.draining.pop(name))
        said, self._events = tuple(self._events), []
        return said

    def close(self) -> tuple[str, ...]:
        """Stop every node, those still to come among them; a sentence for each that could not be stopped."""
        if abandon := getattr(self.provider, "abandon_starts", None):
            abandon()
        for node in [*self.ready.values(), *self.draining.values()]:
            self._stopping.add(node)
        self.ready, self.draining = {}, {}
        for start in self._starts:
            if not start.answer.cancel() and start.answer.exception() is None:
                self._stopping.add(start.answer.result())
        self._starts = []
        left = self._stopping.close()
        self.executor.shutdown()
        return left

    def _try_start(self, type_name: str) -> bool:
        total = len(self._starts) + len(self.ready) + len(self.draining) + len(self._stopping.nodes)
        if not self.is_available(type_name) or (self.most is not None and total >= self.most):
            return False
        self._starts.append(
            _Start(type_name, self.now_s(), self.executor.submit(lambda: self.provider.start(type_name, 1)[0]))
        )
        self._events.append(f"node of type {type_name} requested")
        return True

    def _collect_starts(self, hosts: Collection[str]) -> None:
        for start in list(self._starts):
            if start.node is None and start.answer.done():
                error = start.answer.exception()
                if error is not None:
                    self._starts.remove(start)
                    self._failed(start, f"did not start: {one_line(error)}")
                    continue
                start.node = start.answer.result()
            waited_s = self.now_s() - start.since_s
            if start.node is not None and start.node.host in hosts:
                self._starts.remove(start)
                self._came(start.node, None if start.is_first else waited_s)
            elif start.node is not None and waited_s > GIVEN_UP * self._patience_s(start.type):
                self._starts.remove(start)
                self._failed(start, f"({start.node.name}) was stopped: no executor came from {start.node.host}")
                self._stopping.add(start.node)
            elif waited_s > self._patience_s(start.type):
                self._overdue(start, waited_s)

    def _came(self, node: WorkerNode, waited_s: float | None) -> None:
        known = self._known[node.type]
        known.failures, known.until_s = 0, 0.0
        self.ready[node.name] = node
        if waited_s is None:
            self._events.append(f"node {node.name} joined")
        else:
            known.start_s = waited_s
            self._events.append(f"node {node.name} joined after {waited_s:.0f} s")

    def _overdue(self, start: _Start, waited_s: float) -> None:
        """It may come yet: it stays requested, and others of its type are not tried until it does."""
        known = self._known[start.type]
        if known.until_s <= self.now_s():
            self._failed(start, f"did not come within {waited_s:.0f} s")

    def _patience_s(self, type_name: str) -> float:
        return max(LEAST_PATIENCE_S, OVERDUE * self._known[type_name].start_s)

    def _failed(self, start: _Start, why: str) -> None:
        """Several that were requested together and fail are one failure."""
        known, now_s = self._known[start.type], self.now_s()
        if start.since_s >= known.failed_s or known.until_s <= now_s:
            wait_s = pause_s(FIRST_PAUSE_S, known.failures)
            known.failures, known.failed_s, known.until_s = known.failures + 1, now_s, now_s + wait_s
        event = f"node of type {start.type} {why}; tried again in {known.until_s - now_s:.0f} s"
        self._events += [event] if event not in self._events else []

    def _find_lost(self) -> None:
        if self._listing is None and self.now_s() - self._listed_s >= LIST_EVERY_S:
            self._listed_s = self.now_s()
            known = {*self.ready, *self.draining, *(one.node.name for one in self._starts if one.node is not None)}
            self._listing = _Listing(frozenset(known), self.executor.submit(self.provider.list))
        if self._listing is None or not self._listing.answer.done():
            return
        listing, self._listing = self._listing, None
        error = listing.answer.exception()
        problem = None if error is None else f"nodes are not listed: {one_line(error)}"
        if problem is not None:
            self._events += [problem] if problem != self._list_problem else []
        else:
            self._forget(listing.known - {node.name for node in listing.answer.result()})
        self._list_problem = problem

    def _forget(self, gone: AbstractSet[str]) -> None:
        for name in gone & self.ready.keys():
            del self.ready[name]
            self._events.append(f"node {name} was lost")
        for name in gone & self.draining.keys():
            del self.draining[name]
            self._events.append(f"node {name} was lost while it drained")
        for start in [one for one in self._starts if one.node is not None and one.node.name in gone]:
            self._starts.remove(start)
            self._failed(start, "ended before it joined")

    def _find_absent(self, hosts: Collection[str]) -> None:
        """A node whose executor died gets another one from its worker; one that gets none is of no use."""
        now_s = self.now_s()
        absent = [name for name, node in self.ready.items() if node.host not in hosts]
        self._absent_since_s = {name: self._absent_since_s.get(name, now_s) for name in absent}
        for name in absent:
            if now_s - self._absent_since_s[name] > ABSENT_S:
                self._events.append(f"node {name} has had no executor for {ABSENT_S:.0f} s")
                self._stopping.add(self.ready.pop(name))


Answer = TypeVar("Answer")


def _answered(call: Callable[[], Answer], complaint: str) -> Answer:
    """What a provider says, whose errors are one line whatever they are."""
    try:
        return call()
    except Exception as error:
        raise SluiceError(f"{complaint}: {one_line(error)}") from error
