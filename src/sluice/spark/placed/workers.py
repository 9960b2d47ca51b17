"""Executors as workers. Executor ids change when one is replaced; a worker keeps the name of its host. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sluice.model import Cluster, Worker

EXPECTED = "expected-"
"""How a placement names workers that are yet to come: their instances run elsewhere until they do."""


@dataclass(frozen=True, kw_only=True)
class Executor:
    executor_id: str
    host: str
    cores: int

    @property
    def place(self) -> str:
        """As Spark names the location of one executor."""
        return f"executor_{self.host}_{self.executor_id}"


Workers = Mapping[str, Executor]
"""By the worker's name, in the order of names."""


def workers_of(executors: Iterable[Executor]) -> dict[str, Executor]:
    """A host with one executor gives its name; those of a host with several are numbered by age."""
    by_host: dict[str, list[Executor]] = {}
    for executor in sorted(executors, key=lambda one: (len(one.executor_id), one.executor_id)):
        by_host.setdefault(executor.host, []).append(executor)
    named = {
        host if number == 1 else f"{host}#{number}": executor
        for host, found in by_host.items()
        for number, executor in enumerate(found, 1)
    }
    return dict(sorted(named.items()))


def cluster_of(workers: Workers, capacity: Mapping[str, float | None] | None = None) -> Cluster:
    """As placement strategies see them; `capacity` (cpu, io, net) is that of every worker."""
    return Cluster(
        workers=tuple(Worker(name=name, slots=one.cores, **(capacity or {})) for name, one in workers.items())
    )
