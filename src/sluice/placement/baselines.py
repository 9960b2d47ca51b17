"""The strategies CAPS is compared with: two of Flink's, and an integer programme."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sluice.errors import BadInputError, needs_extra
from sluice.placement.problem import Counts, PlacementProblem, build
from sluice.placement.request import PlacementRequest, PlacementResult, TaskLoad, placer
from sluice.registry import parameter

PARTS = 840
"""Shares of an operator on a worker are whole numbers of this: divisible by 1 to 8, within 0.5 % for more."""
UNITS = 1000
"""Every objective is a whole number up to this."""

WEIGHTS: dict[str, tuple[int, int, int]] = {"default": (1, 1, 1), "weighted": (6, 1, 2), "latency": (1, 0, 0)}
"""Response time, traffic, slots."""


@dataclass(frozen=True, kw_only=True)
class _SeededPlacer(ABC):
    """Places tasks in a random order."""

    seed: int = parameter(0, "chooses the order of tasks; the same request and seed give the same plan")

    def place(self, request: PlacementRequest) -> PlacementResult:
        started_s = time.perf_counter()
        problem = build(request)
        if not problem.fits:
            return PlacementResult.no_room(request)
        counts = problem.arrays.pinned.copy()
        how = self._fill(problem, counts)
        return problem.result(counts, started_s, f"{how}, order drawn with seed {self.seed}")

    @abstractmethod
    def _fill(self, problem: PlacementProblem, counts: Counts) -> str:
        """Add every task that is not pinned to `counts`; returns the rule in words."""

    def _tasks(self, problem: PlacementProblem) -> list[int]:
        """The layer of every task that is not pinned, in an order that depends on the seed and the parallelism."""
        arrays = problem.arrays
        layers: Counts = np.repeat(np.arange(len(arrays.tasks)), arrays.tasks - arrays.pinned.sum(axis=1))
        random = np.random.default_rng([self.seed, *problem.request.parallelism.values()])
        return [int(layer) for layer in random.permutation(layers)]


@placer("default")
@dataclass(frozen=True, kw_only=True)
class Default(_SeededPlacer):
    """Fill a worker before the next is used, tasks drawn at random (CAPSys 2.2)."""

    def _fill(self, problem: PlacementProblem, counts: Counts) -> str:
        names = [worker.name for worker in problem.request.cluster.workers]
        order = sorted(range(len(names)), key=lambda at: names.index(problem.workers[at].name))
        tasks = iter(self._tasks(problem))
        for worker in order:
            for _ in range(int(problem.arrays.slots[worker] - counts[:, worker].sum())):
                if (layer := next(tasks, None)) is not None:
                    counts[layer, worker] += 1
        return "workers filled one by one"


@placer("evenly")
@dataclass(frozen=True, kw_only=True)
class Evenly(_SeededPlacer):
    """Every task, in random order, to the worker with the largest share of free slots (CAPSys 2.2)."""

    def _fill(self, problem: PlacementProblem, counts: Counts) -> str:
        slots = problem.arrays.slots
        for layer in self._tasks(problem):
            counts[layer, int(((slots - counts.sum(axis=0)) / slots).argmax())] += 1
        return "tasks counted out evenly"


@placer("odrp")
@dataclass(frozen=True, kw_only=True)
class Odrp:
    """Integer programme over response time, traffic and slots; with joint=true it chooses the parallelism too.

    ODRP is optimal replication and placement (Cardellini et al. 2017; CAPSys 2.2 and 6.3). The objective weighs three
    things, each divided by its worst value: the response time of the slowest path, the traffic between workers, and the
    slots used; availability, the fourth, is perfect everywhere and constant. Nothing requires that the input rate be
    sustained: that is the finding of CAPSys, which this baseline demonstrates. As in CAPSys 6.3 an operator's execution
    time is the inverse of its processing rate, so it falls with the number of replicas.
    """

    objective: Literal["default", "weighted", "latency"] = parameter(
        "default", "default weighs all alike, weighted favours response time, latency knows nothing else"
    )
    joint: bool = parameter(False, "choose the parallelism as well, up to all slots, instead of placing what is given")
    hop_share: float = parameter(0.1, "delay of an edge between workers, as a share of the longest execution time")
    effort: float = parameter(60.0, "work until the best plan so far is returned: about a second each on an idle core")
    timeout_s: float = parameter(300.0, "return the best plan so far after this time")

    def __post_init__(self) -> None:
        for name in ("hop_share", "effort", "timeout_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")

    def place(self, request: PlacementRequest) -> PlacementResult:
        if skewed := sorted(request.groups.keys() - request.loads.keys()):
            raise BadInputError(f"odrp knows no skewed operators, got groups for {', '.join(skewed)}")
        started_s = time.perf_counter()
        if request.tasks > request.cluster.slots and not self.joint:
            return PlacementResult.no_room(request)
        programme = _Programme(request, self.joint, self.hop_share)
        status, tasks, solver = programme.solve(WEIGHTS[self.objective], self.effort, self.timeout_s)
        if tasks is None:
            return PlacementResult(placement=None, reason=f"odrp: the solver found no plan: {status}")
        final = _with_parallelism(request, {name: sum(row) for name, row in tasks.items()})
        problem = build(final)
        counts: Counts = np.zeros_like(problem.arrays.pinned)
        names = [worker.name for worker in request.cluster.workers]
        for layer, operator in enumerate(problem.operators):
            for column, worker in enumerate(problem.workers):
                counts[layer, column] = tasks[operator][names.index(worker.name)]
        bound, value = solver.BestObjectiveBound(), solver.ObjectiveValue()
        how = f"odrp {self.objective}: objective {value:.0f}, bound {bound:.0f} ({status})"
        return problem.result(counts, started_s, how, explored=int(solver.NumBranches()))


def _with_parallelism(request: PlacementRequest, parallelism: dict[str, int]) -> PlacementRequest:
    """The same work on another number of tasks, all alike."""
    loads = {
        name: TaskLoad(**{d: value * request.parallelism[name] / parallelism[name] for d, value in load})
        for name, load in request.loads.items()
    }
    return request.model_copy(update={"parallelism": parallelism, "loads": loads, "groups": {}})


class _Programme:
    """The variables: how many replicas of each operator sit on each worker."""

    def __init__(self, request: PlacementRequest, joint: bool, hop_share: float) -> None:
        with needs_extra("the placement strategy 'odrp'", "placement"):
            from ortools.sat.python import cp_model

        self._cp: Any = cp_model
        self.request = request
        self.model: Any = cp_model.CpModel()
        self.slots = [worker.slots for worker in request.cluster.workers]
        names = request.graph.names
        most = request.cluster.slots - len(names) + 1
        self.work = {name: request.loads.get(name, TaskLoad()).cpu * request.parallelism[name] for name in names}
        longest = max(self.work.values()) or 1.0
        self.hop = hop_share * longest
        self.replicas: dict[str, Any] = {}
        self.count: dict[str, list[Any]] = {}
        self.share: dict[str, list[Any]] = {}
        for name in names:
            low, high = (1, most) if joint else (request.parallelism[name],) * 2
            pinned = self._pinned(name)
            self.replicas[name] = self.model.new_int_var(low, high, f"replicas {name}")
            self.count[name] = [
                self.model.new_int_var(least, min(high, slots), "")
                for least, slots in zip(pinned, self.slots, strict=True)
            ]
            self.model.add(sum(self.count[name]) == self.replicas[name])
            self.share[name] = [self.model.new_int_var(0, PARTS, "") for _ in self.slots]
            for share, count in zip(self.share[name], self.count[name], strict=True):
                self.model.add_division_equality(share, PARTS * count, self.replicas[name])
        if len(set(self.slots)) == 1 and request.pinned is None:
            heaviest = self.count[max(names, key=lambda name: self.work[name])]
            for one, other in itertools.pairwise(heaviest):
                self.model.add(one >= other)
        for worker, slots in enumerate(self.slots):
            self.model.add(sum(self.count[name][worker] for name in names) <= slots)

    def _pinned(self, name: str) -> list[int]:
        held = self.request.pinned.of(name) if self.request.pinned else {}
        return [held.get(worker.name, 0) for worker in self.request.cluster.workers]

    def solve(
        self, weights: tuple[int, int, int], effort: float, timeout_s: float
    ) -> tuple[str, dict[str, list[int]] | None, Any]:
        remote = {edge.ends: self._remote_share(*edge.ends) for edge in self.request.graph.edges}
        response, traffic, slots = weights
        self.model.minimize(
            response * self._response_time(remote) + traffic * self._traffic(remote) + slots * self._slots_used()
        )
        solver = self._cp.CpSolver()
        # the solver's own count of its work, in one order: the same plan on a busy machine
        solver.parameters.max_deterministic_time = effort
        solver.parameters.interleave_search = True
        solver.parameters.max_time_in_seconds = timeout_s
        solver.parameters.num_workers = 2
        solver.parameters.random_seed = 0
        status = solver.solve(self.model)
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return solver.status_name(status).lower(), None, solver
        tasks = {name: [solver.value(count) for count in row] for name, row in self.count.items()}
        return solver.status_name(status).lower(), tasks, solver

    def _remote_share(self, source: str, target: str) -> Any:
        """Share of the links between two operators that cross workers, in parts squared."""
        local = []
        for here, there in zip(self.share[source], self.share[target], strict=True):
            both = self.model.new_int_var(0, PARTS * PARTS, "")
            self.model.add_multiplication_equality(both, here, there)
            local.append(both)
        return PARTS * PARTS - sum(local)

    def _response_time(self, remote: dict[tuple[str, str], Any]) -> Any:
        """The slowest path from a source to a sink; the worst is one replica each and every hop remote."""
        topology = self.request.graph.topology
        worst: dict[str, float] = {}
        for name in topology.order:
            before = max((worst[source] + self.hop for source in topology.predecessors[name]), default=0.0)
            worst[name] = before + self.work[name]
        unit = UNITS * PARTS / (max(worst.values()) or 1.0)
        ends: dict[str, Any] = {}
        for name in topology.order:
            ends[name] = self.model.new_int_var(0, 2 * UNITS * PARTS, f"end of {name}")
            execution = self.model.new_int_var(0, UNITS * PARTS, "")
            self.model.add_division_equality(execution, round(self.work[name] * unit), self.replicas[name])
            self.model.add(ends[name] >= execution)
            for source in topology.predecessors[name]:
                delay = self.model.new_int_var(0, UNITS * PARTS, "")
                self.model.add(PARTS * PARTS * delay >= round(self.hop * unit) * remote[source, name])
                self.model.add(ends[name] >= ends[source] + delay + execution)
        slowest = self.model.new_int_var(0, 2 * UNITS, "response time")
        self.model.add_max_equality(top := self.model.new_int_var(0, 2 * UNITS * PARTS, ""), list(ends.values()))
        self.model.add_division_equality(slowest, top, PARTS)
        return slowest

    def _traffic(self, remote: dict[tuple[str, str], Any]) -> Any:
        """Bytes per second between workers; the worst is everything sent across."""
        sent = {name: load.net * self.request.parallelism[name] for name, load in self.request.loads.items()}
        total = sum(sent.get(source, 0.0) for source, _ in remote) or 1.0
        terms = [round(UNITS * sent.get(ends[0], 0.0) / total) * share for ends, share in remote.items()]
        traffic = self.model.new_int_var(0, 2 * UNITS, "traffic")
        if terms:
            self.model.add(PARTS * PARTS * traffic >= sum(terms))
        return traffic

    def _slots_used(self) -> Any:
        used = self.model.new_int_var(0, UNITS, "slots")
        self.model.add(sum(self.slots) * used >= UNITS * sum(self.replicas.values()))
        return used
