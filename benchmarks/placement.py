"""How fast and how good CAPS is: against a solver, against random plans, and from 64 to 4096 tasks.

Run alone: `python -m benchmarks.placement [--short] [--profiles FOLDER]`. Times are CPU time of one core, the search
being single-threaded, after loading the compiled search: the first run on a machine compiles it (about half a minute),
later processes load it from the cache (under a second).
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from sluice.lab.reproduce.capsys_search import THRESHOLDS, q2_join
from sluice.model import Cluster, Edge, Graph, Operator
from sluice.placement import PlacementRequest, PlacementResult, TaskLoad
from sluice.placement.caps import Caps
from sluice.placement.problem import PlacementProblem, build
from sluice.placement.request import read_profile

SIZES = ((4, 16), (8, 16), (16, 16), (16, 32), (16, 64), (32, 64), (64, 64))
PRECISION = 1_000_000
console = Console(width=150)


def seconds(placer: Caps, request: PlacementRequest, repeats: int) -> tuple[float, PlacementResult]:
    times = []
    for _ in range(repeats):
        started_s = time.process_time()
        placed = placer.place(request)
        times.append(time.process_time() - started_s)
    return statistics.median(times), placed


def first_plans(repeats: int) -> None:
    table = Table(
        "tasks", "thresholds cpu io net", "caps", "solver", "solver / caps", title="first plan within thresholds"
    )
    for (workers, slots), limits in itertools.product(((16, 16), (16, 64)), THRESHOLDS):
        request = q2_join("", workers, slots)
        placer = Caps(cpu=limits[0], io=limits[1], net=limits[2], first=True)
        took_s, placed = seconds(placer, request, repeats)
        assert placed.feasible, placed.reason
        solver_s, _, _ = solved(build(request), limits=np.array(limits), timeout_s=60.0)
        table.add_row(
            f"{request.tasks}",
            str(limits),
            f"{took_s * 1e3:.1f} ms",
            f"{solver_s * 1e3:.0f} ms",
            f"{solver_s / took_s:.0f}",
        )
    console.print(table)
    console.print("The paper: up to 100 ms for 256 tasks on 20 cores.\n")


def growth(sizes: tuple[tuple[int, int], ...], repeats: int) -> None:
    table = Table("workers x slots", "tasks", "tuned plan", "time / time at 64", "explored", "gap left", title="growth")
    base_s = 0.0
    points = []
    for workers, slots in sizes:
        request = q2_join("", workers, slots)
        took_s, placed = seconds(Caps(), request, repeats)
        base_s = base_s or took_s
        points.append((math.log(request.tasks), math.log(took_s)))
        gap = "proven best" if placed.gap == 0 else f"{placed.gap:.3f}"
        table.add_row(
            f"{workers} x {slots}",
            f"{request.tasks}",
            f"{took_s * 1e3:.1f} ms",
            f"{took_s / base_s:.1f}",
            f"{placed.explored:,}",
            gap,
        )
    console.print(table)
    log_tasks, log_times = np.transpose(points)
    exponent = np.polyfit(log_tasks, log_times, 1)[0]
    console.print(
        f"time grows like tasks^{exponent:.2f}. The paper: 1.16 s for 64 tasks, 125 s for 1024, on 20 cores.\n"
    )


def random_requests(number: int) -> Iterator[tuple[str, PlacementRequest]]:
    chance = np.random.default_rng(7)
    for at in range(number):
        size = int(chance.integers(3, 8))
        names = [f"o{n}" for n in range(size)]
        workers, slots = int(chance.integers(3, 9)), int(chance.integers(4, 13))
        tasks = int(workers * slots * chance.uniform(0.6, 1.0))
        counts = 1 + chance.multinomial(max(tasks - size, 0), chance.dirichlet(np.ones(size)))
        edges = [pair for pair in itertools.combinations(names, 2) if chance.random() < 0.4]
        kinds = chance.choice(["hash", "rebalance", "forward"], len(edges))
        loads = chance.gamma(0.7, 1.0, (size, 3)) * (chance.random((size, 3)) < 0.7)
        yield (
            f"random {at}",
            PlacementRequest(
                graph=Graph(
                    operators=tuple(Operator(name=name) for name in names),
                    edges=tuple(Edge(source=a, target=b, kind=str(k)) for (a, b), k in zip(edges, kinds, strict=True)),
                ),
                parallelism=dict(zip(names, (int(count) for count in counts), strict=True)),
                cluster=Cluster.uniform(workers, slots),
                loads={
                    name: TaskLoad(cpu=float(cpu), io=float(io), net=float(net))
                    for name, (cpu, io, net) in zip(names, loads, strict=True)
                },
            ),
        )


def random_plan_costs(problem: PlacementProblem, plans: int, seed: int = 3) -> np.ndarray:
    """Costs of plans drawn uniformly over slots."""
    arrays = problem.arrays
    layers, workers = arrays.pinned.shape
    chance = np.random.default_rng(seed)
    slot_worker = np.repeat(np.arange(workers), arrays.slots)
    task_layer = np.repeat(np.arange(layers), arrays.tasks)
    found = []
    for start in range(0, plans, 5000):
        chunk = min(5000, plans - start)
        order = np.argsort(chance.random((chunk, len(slot_worker))), axis=1)[:, : len(task_layer)]
        index = np.arange(chunk)[:, None] * layers * workers + task_layer * workers + slot_worker[order]
        counts = np.bincount(index.ravel(), minlength=chunk * layers * workers).reshape(chunk, layers, workers)
        remote = np.zeros(counts.shape)
        for layer in range(layers):
            for at in range(arrays.successors.start[layer], arrays.successors.start[layer + 1]):
                target = arrays.successors.layer[at]
                there = counts[:, target]
                if arrays.successors.forward[at]:
                    remote[:, layer] += np.maximum(counts[:, layer] - there, 0)
                else:
                    remote[:, layer] += counts[:, layer] * (arrays.tasks[target] - there)
        rows = [np.einsum("l,nlw->nw", arrays.load[d], counts if d < 2 else remote).max(axis=1) for d in range(3)]
        found.append(np.stack(rows, axis=1) - arrays.offset)
    return np.concatenate(found)


def solved(
    problem: PlacementProblem, *, limits: np.ndarray | None = None, timeout_s: float
) -> tuple[float, float | None, float | None]:
    """CP-SAT: any plan within the limits, or the plan with the lowest sum of costs: (seconds, sum, proven bound)."""
    from ortools.sat.python import cp_model

    arrays = problem.arrays
    layers, workers = arrays.pinned.shape
    model = cp_model.CpModel()
    count = [
        [model.new_int_var(0, int(min(arrays.tasks[layer], arrays.slots[w])), "") for w in range(workers)]
        for layer in range(layers)
    ]
    for layer in range(layers):
        model.add(sum(count[layer]) == int(arrays.tasks[layer]))
    for w in range(workers):
        model.add(sum(count[layer][w] for layer in range(layers)) <= int(arrays.slots[w]))
        if w:
            model.add(count[0][w - 1] >= count[0][w])
    load = np.rint(arrays.load * PRECISION).astype(int)
    highest = []
    for d in range(3):
        top = model.new_int_var(0, 10 * PRECISION, "")
        highest.append(top)
        for w in range(workers):
            model.add(top >= sum(_terms(model, problem, load[d], count, w, d)))
    offset = np.rint(arrays.offset * PRECISION).astype(int)
    if limits is None:
        model.minimize(sum(highest))
    else:
        for d in range(3):
            model.add(highest[d] <= int(limits[d] * PRECISION) + int(offset[d]))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = timeout_s
    solver.parameters.num_workers = 2
    started_s = time.process_time()
    status = solver.solve(model)
    took_s = time.process_time() - started_s
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE) or limits is not None:
        return took_s, None, None
    even = float(offset.sum())
    return took_s, (solver.objective_value - even) / PRECISION, (solver.best_objective_bound - even) / PRECISION


def _terms(model, problem: PlacementProblem, load: np.ndarray, count: list[list], w: int, d: int) -> list:  # type: ignore[no-untyped-def, type-arg]
    arrays = problem.arrays
    if d < 2:
        return [int(load[layer]) * count[layer][w] for layer in range(len(load))]
    terms = []
    for layer in range(len(load)):
        here = count[layer][w]
        for at in range(arrays.successors.start[layer], arrays.successors.start[layer + 1]):
            there = count[arrays.successors.layer[at]][w]
            sends = int(arrays.tasks[layer]) * int(arrays.tasks[arrays.successors.layer[at]])
            remote = model.new_int_var(0, sends, "")
            if arrays.successors.forward[at]:
                model.add(remote >= here - there)
            else:
                model.add_multiplication_equality(remote, here, int(arrays.tasks[arrays.successors.layer[at]]) - there)
            terms.append(int(load[layer]) * remote)
    return terms


def quality(requests: list[tuple[str, PlacementRequest]], plans: int, solver_s: float) -> None:
    title = (
        f"quality: against {plans:,} random plans, and against the lowest sum of costs a solver finds in {solver_s:g} s"
    )
    table = Table(
        "case",
        "tasks",
        "caps cpu io net",
        "sum",
        "random's best sum",
        "plans that beat caps",
        "solver",
        "bound",
        title=title,
    )
    beaten = worse = 0
    over_solver = []
    for name, request in requests:
        problem = build(request)
        placed = Caps().place(request)
        assert placed.costs is not None
        mine = np.array([placed.costs.cpu, placed.costs.io, placed.costs.net])
        random_costs = random_plan_costs(problem, plans)
        beating = int(
            (random_costs <= mine + 1e-9).all(axis=1).sum() - (np.abs(random_costs - mine) < 1e-9).all(axis=1).sum()
        )
        best = float(random_costs.sum(axis=1).min())
        _, optimum, bound = solved(problem, timeout_s=solver_s)
        beaten += beating
        worse += mine.sum() > best + 1e-9
        if optimum is not None:
            over_solver.append(mine.sum() - optimum)
        table.add_row(
            name,
            f"{request.tasks}",
            " ".join(f"{value:.3f}" for value in mine),
            f"{mine.sum():.3f}",
            f"{best:.3f}",
            f"{beating}",
            "-" if optimum is None else f"{optimum:.3f}",
            "-" if bound is None else f"{bound:.3f}",
        )
    console.print(table)
    console.print(
        f"random plans that beat caps: {beaten}; cases where a random plan has a lower sum: {worse} of "
        f"{len(requests)}; caps above the solver's sum by {np.mean(over_solver):.4f} on average, "
        f"{np.max(over_solver):.4f} at most "
        f"(below 0: the solver ran out of time)\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="fewer repeats and cases")
    parser.add_argument("--profiles", type=Path, help="folder with profiles to include in the quality table")
    arguments = parser.parse_args()
    repeats = 3 if arguments.short else 9
    Caps().place(q2_join("", 4, 4))
    first_plans(repeats)
    growth(SIZES, repeats)
    files = sorted(arguments.profiles.glob("*.json")) if arguments.profiles else []
    requests = [(path.stem, read_profile(path).request(Cluster.uniform(4, 8))) for path in files]
    requests += [("q2-join 4 x 16", q2_join("", 4, 16)), *random_requests(4 if arguments.short else 20)]
    quality(requests, 50_000, 2.0 if arguments.short else 10.0)


if __name__ == "__main__":
    main()
