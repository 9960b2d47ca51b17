"""The slow truth: every assignment written out, every task and every link looked at one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from sluice.model import Cluster, Edge, Graph, Operator, Worker
from sluice.placement import PlacementRequest, TaskLoad

Plan = dict[str, tuple[int, ...]]
"""Operator -> tasks on each worker, in the cluster's order."""

DIMENSIONS = ("cpu", "io", "net")


def chain(*parallelism: int, workers: int, slots: int, kind: str = "hash") -> PlacementRequest:
    """Operators a, b, c, ... in a row, the later the heavier."""
    names = [chr(ord("a") + number) for number in range(len(parallelism))]
    return PlacementRequest(
        graph=Graph(
            operators=tuple(Operator(name=name) for name in names),
            edges=tuple(Edge(source=a, target=b, kind=kind) for a, b in itertools.pairwise(names)),
        ),
        parallelism=dict(zip(names, parallelism, strict=True)),
        cluster=Cluster.uniform(workers, slots),
        loads={name: TaskLoad(cpu=1.0 + n, io=float(n % 2), net=3.0) for n, name in enumerate(names)},
    )


def all_plans(request: PlacementRequest) -> list[Plan]:
    """Every plan once, those that differ only in the names of interchangeable workers counted as one."""
    names, workers = request.graph.names, request.cluster.workers
    pinned = request.pinned.tasks if request.pinned else {}
    alike = [(w.slots, w.cpu, w.io, w.net, tuple(sorted(pinned.get(w.name, {}).items()))) for w in workers]
    seen: dict[object, Plan] = {}
    for rows in itertools.product(*(_splits(request.parallelism[name], len(workers)) for name in names)):
        columns = list(zip(*rows, strict=True))
        if any(sum(column) > worker.slots for column, worker in zip(columns, workers, strict=True)):
            continue
        held = [[pinned.get(worker.name, {}).get(name, 0) for name in names] for worker in workers]
        if any(
            has < must
            for column, need in zip(columns, held, strict=True)
            for has, must in zip(column, need, strict=True)
        ):
            continue
        key = tuple(sorted((str(kind), column) for kind, column in zip(alike, columns, strict=True)))
        seen.setdefault(key, dict(zip(names, rows, strict=True)))
    return list(seen.values())


def _splits(tasks: int, workers: int) -> Iterator[tuple[int, ...]]:
    if workers == 1:
        yield (tasks,)
        return
    for here in range(tasks + 1):
        for rest in _splits(tasks - here, workers - 1):
            yield (here, *rest)


def costs(request: PlacementRequest, plan: Plan) -> tuple[float, float, float]:
    """CAPSys, equations 4 to 8, task by task; workers are alike."""
    workers = range(len(request.cluster.workers))
    slots = request.cluster.workers[0].slots
    load = {name: request.loads.get(name, TaskLoad()) for name in plan}
    found = []
    for d in DIMENSIONS:
        per_task = sorted((getattr(load[name], d) for name in plan for _ in range(sum(plan[name]))), reverse=True)
        lowest = 0.0 if d == "net" else sum(per_task) / len(workers)
        highest = sum(per_task[:slots])
        if d == "net":
            here = max(sum(_sent(request, plan, name, worker) for name in plan) for worker in workers)
        else:
            here = max(sum(getattr(load[name], d) * plan[name][worker] for name in plan) for worker in workers)
        found.append(0.0 if highest - lowest <= 1e-12 * highest else (here - lowest) / (highest - lowest))
    return (found[0], found[1], found[2])


def _sent(request: PlacementRequest, plan: Plan, name: str, worker: int) -> float:
    """Outbound traffic of an operator's tasks on a worker: load times remote links over links, task by task."""
    sent = 0.0
    mine = plan[name][worker]
    edges = [edge for edge in request.graph.edges if edge.source == name]
    for task in range(mine):
        links = remote = 0
        for edge in edges:
            there = plan[edge.target]
            if edge.kind == "forward" and sum(there) == sum(plan[name]):
                links += 1
                remote += task >= there[worker]
            else:
                links += sum(there)
                remote += sum(there) - there[worker]
        sent += request.loads.get(name, TaskLoad()).net * remote / links if links else 0.0
    return sent


def pareto(vectors: list[tuple[float, float, float]]) -> np.ndarray:
    """The distinct vectors that no other beats, in order."""
    unique = sorted({tuple(round(value, 7) for value in vector) for vector in vectors})
    best = [
        one
        for one in unique
        if not any(other != one and all(o <= v for o, v in zip(other, one, strict=True)) for other in unique)
    ]
    return np.array(best)


@st.composite
def small_requests(draw: st.DrawFn, most_tasks: int = 9) -> PlacementRequest:
    """Any graph of up to four operators with any edges, on two or three workers it fits on."""
    size = draw(st.integers(1, 4))
    names = ["a", "b", "c", "d"][:size]
    parallelism = {name: draw(st.integers(1, max(1, most_tasks // size))) for name in names}
    tasks = sum(parallelism.values())
    workers = draw(st.integers(2, 3))
    slots = draw(st.integers(-(-tasks // workers), tasks + 1))
    pairs = [pair for pair in itertools.combinations(names, 2) if draw(st.booleans())]
    kinds = st.sampled_from(["hash", "rebalance", "forward"])
    load = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 7.0])
    return PlacementRequest(
        graph=Graph(
            operators=tuple(Operator(name=name) for name in names),
            edges=tuple(Edge(source=a, target=b, kind=draw(kinds)) for a, b in pairs),
        ),
        parallelism=parallelism,
        cluster=Cluster.uniform(workers, slots),
        loads={name: TaskLoad(cpu=draw(load), io=draw(load), net=draw(load)) for name in names},
    )


def mixed_cluster() -> Cluster:
    """Two small workers and a large one."""
    return Cluster(workers=(Worker(name="s1", slots=2), Worker(name="s2", slots=2), Worker(name="l1", slots=5)))
