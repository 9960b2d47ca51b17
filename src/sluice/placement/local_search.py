"""Local search for clusters too large to enumerate: move and swap tasks until no worker exceeds the limits.

A worker's load depends on its own column only, so a move or a swap changes two workers and is priced in a few
additions. One step relieves the worker that exceeds its limits most, by the best move or swap; a task that has just
left a worker may not come back for a while, so plateaus are crossed. Random numbers come from a small generator
inside: the same start and seed give the same plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sluice.placement.enumeration import NO_LIMITS, ParetoSet, column_load, compiled, network_change
from sluice.placement.problem import CPU, IO, NET, ROUNDING, Counts, Floats

RELAXATION = 1.1
TIGHTEST = 0.01
"""A threshold of 0 cannot be relaxed by a factor; relaxing starts here."""


@dataclass(frozen=True)
class LocalSearch:
    """Reduce the excess over limits, lower the limits, keep every plan found on the way."""

    kept: ParetoSet
    steps: int
    is_over: Callable[[], bool]
    bounds: Floats

    def run(self) -> None:
        for counted in ((True, True, True), (True, True, False)):
            self.start(np.array(counted))
        for d in range(3):
            self._lower_one(d)
        self._relax_together()
        self.lower_sum(NO_LIMITS)

    def start(self, counted: npt.NDArray[np.bool_]) -> Counts:
        """A plan that spreads the load of the dimensions marked, kept like any other."""
        arrays = self.kept.arrays
        counts: Counts = spread_tasks(arrays, counted)
        self.kept.explored += int(arrays.tasks.sum()) * len(arrays.slots)
        self.kept.add(counts)
        return counts

    def attempt(self, start: Counts, limits: Floats) -> Counts | None:
        """A plan within the limits near the start, if the local search finds one; its last plan is kept either way."""
        counts = start.copy()
        excess, priced = reduce_excess(self.kept.arrays, counts, limits, self.steps, 1)
        self.kept.explored += int(priced)
        self.kept.add(counts)
        return counts if excess <= 0.0 else None

    def nearest(self, limits: Floats) -> Counts:
        """The plan kept that exceeds these limits least."""
        excess = [float(np.maximum(costs - limits, 0.0).sum()) for costs in self.kept.costs]
        return self.kept.plans[int(np.argmin(excess))]

    def lower_sum(self, limits: Floats) -> None:
        """Within the limits, lower the sum of costs: less of one for at most half of that more of each other."""
        stride = 0.08
        while stride > 0.002 and not self.is_over():
            at = min(self.kept.within(limits), key=lambda at: float(self.kept.costs[at].sum()))
            plan, costs = self.kept.plans[at], self.kept.costs[at]
            if not any(self._trade(plan, costs, d, stride, limits) for d in (2, 0, 1)):
                stride /= 2.5

    def _trade(self, plan: Counts, costs: Floats, d: int, stride: float, limits: Floats) -> bool:
        if costs[d] - stride < self.bounds[d]:
            return False
        traded = np.minimum(costs + 0.45 * stride, limits)
        traded[d] = costs[d] - stride
        return self.attempt(plan, traded) is not None

    def _lower_one(self, d: int) -> None:
        """Try the bound itself, then halve the distance to it, the other dimensions left free."""
        alone = np.zeros(3, bool)
        alone[d] = True
        self.start(alone)
        target = float(self.bounds[d])
        for _ in range(6):
            at = min(range(len(self.kept.costs)), key=lambda at: float(self.kept.costs[at][d]))
            lowest = float(self.kept.costs[at][d])
            if self.is_over() or lowest - target < 0.002:
                return
            limits = NO_LIMITS.copy()
            limits[d] = target
            if self.attempt(self.kept.plans[at], limits) is None:
                target = (target + float(min(costs[d] for costs in self.kept.costs))) / 2

    def _relax_together(self) -> None:
        """The fewest relaxations of the tightest thresholds under which a plan is found, by bisection."""
        tightest = np.min(self.kept.costs, axis=0)
        low, high = 0, min(steps_needed(tightest, costs) for costs in self.kept.costs)
        while low < high and not self.is_over():
            middle = (low + high) // 2
            limits = thresholds(tightest, middle)
            succeeded = self.attempt(self.nearest(limits), limits) is not None
            low, high = (low, middle) if succeeded else (middle + 1, high)


def thresholds(tightest: Floats, steps: int) -> Floats:
    """All relaxed together, `steps` times (CAPSys 5.2)."""
    return np.asarray(np.maximum(tightest, TIGHTEST) * RELAXATION**steps)


def steps_needed(tightest: Floats, costs: Floats) -> int:
    """How often the thresholds must be relaxed until these costs keep them."""
    ratio = max(float((costs / np.maximum(tightest, TIGHTEST)).max()), 1.0)
    return int(np.ceil(np.log(ratio) / np.log(RELAXATION) - ROUNDING))


@compiled
def spread_tasks(arrays: Any, counted: Any) -> Any:
    """A first plan: heaviest layers first, every task to the worker on which it adds least to the squared loads.

    Only the dimensions that `counted` marks matter.
    """
    layers, workers = arrays.pinned.shape
    counts = arrays.pinned.copy()
    total = np.zeros((3, workers))
    free = arrays.slots.copy()
    for worker in range(workers):
        column_load(arrays, counts, worker, total)
        free[worker] -= counts[:, worker].sum()
    for layer in range(layers):
        for _ in range(arrays.tasks[layer] - arrays.pinned[layer].sum()):
            best, best_rise = -1, np.inf
            for worker in range(workers):
                if free[worker] == 0:
                    continue
                added = (
                    arrays.load[CPU, layer],
                    arrays.load[IO, layer],
                    network_change(arrays, counts, worker, layer, 1),
                )
                # where loads are equal the emptier worker is taken: slots stay free everywhere
                rise = -1e-9 * free[worker]
                for d in range(3):
                    if counted[d]:
                        inverse_size = arrays.inverse_size[d, worker]
                        rise += added[d] * (2.0 * total[d, worker] + added[d]) * inverse_size * inverse_size
                if rise < best_rise:
                    best, best_rise = worker, rise
            counts[layer, best] += 1
            free[best] -= 1
            column_load(arrays, counts, best, total)
    return counts


@compiled
def _over(arrays: Any, worker: int, ceiling: Any, cpu: float, io: float, net: float) -> Any:
    """By how much a worker with these loads exceeds the limits, all dimensions together."""
    inverse_size = arrays.inverse_size
    return (
        max(cpu * inverse_size[CPU, worker] - ceiling[CPU], 0.0)
        + max(io * inverse_size[IO, worker] - ceiling[IO], 0.0)
        + max(net * inverse_size[NET, worker] - ceiling[NET], 0.0)
    )


@compiled
def _next_random(state: Any) -> Any:
    """Marsaglia's xorshift; the state is a one-element array."""
    value = state[0]
    value ^= value << np.uint64(13)
    value ^= value >> np.uint64(7)
    value ^= value << np.uint64(17)
    state[0] = value
    return np.int64(value >> np.uint64(2))


@compiled
def _worst_worker(over: Any, step: int, state: Any) -> Any:
    """The worker that exceeds its limits most; every eighth time another that does, for the worst may be stuck."""
    if step % 8:
        return int(np.argmax(over))
    start = _next_random(state) % len(over)
    for skip in range(len(over)):
        if over[(start + skip) % len(over)] > 0.0:
            return (start + skip) % len(over)
    return start


@compiled
def _neighbours(arrays: Any) -> Any:
    """Which layers exchange records: what one does to the network depends on the other."""
    layers = len(arrays.tasks)
    linked = np.zeros((layers, layers), np.bool_)
    for layer in range(layers):
        for at in range(arrays.successors.start[layer], arrays.successors.start[layer + 1]):
            linked[layer, arrays.successors.layer[at]] = True
            linked[arrays.successors.layer[at], layer] = True
    return linked


@compiled
def _excess_left(arrays: Any, counts: Any, total: Any, ceiling: Any, worst: int, layer: int, left: Any) -> None:
    """What `worst` exceeds once a task of `layer` has left it: `left[0]`, and `left[1 + b]` with one of b in return."""
    cpu = total[CPU, worst] - arrays.load[CPU, layer]
    io = total[IO, worst] - arrays.load[IO, layer]
    net = total[NET, worst] + network_change(arrays, counts, worst, layer, -1)
    left[0] = _over(arrays, worst, ceiling, cpu, io, net)
    counts[layer, worst] -= 1
    for back in range(counts.shape[0]):
        returned = network_change(arrays, counts, worst, back, 1)
        left[1 + back] = _over(
            arrays, worst, ceiling, cpu + arrays.load[CPU, back], io + arrays.load[IO, back], net + returned
        )
    counts[layer, worst] += 1


@compiled
def _best_exchange(
    arrays: Any,
    counts: Any,
    total: Any,
    free: Any,
    over: Any,
    ceiling: Any,
    worst: int,
    banned: Any,
    step: int,
    spare: float,
    near: Any,
    leaving: Any,
) -> Any:
    """The move (back = -1) or swap that lowers the excess most, as (layer, worker, back), and how many were priced.

    A banned arrival is allowed only if it brings the whole excess below anything seen so far (a change below `spare`).
    `leaving[b, w]` is the change of the network load of w when a task of b leaves it, `near` who changes that.
    """
    layers, workers = counts.shape
    exchange = (-1, -1, -1)
    best = np.inf
    priced = 0
    left = np.empty(layers + 1)
    for layer in range(layers):
        if counts[layer, worst] <= arrays.pinned[layer, worst]:
            continue
        _excess_left(arrays, counts, total, ceiling, worst, layer, left)
        for worker in range(workers):
            if worker == worst:
                continue
            before = over[worst] + over[worker]
            cpu = total[CPU, worker] + arrays.load[CPU, layer]
            io = total[IO, worker] + arrays.load[IO, layer]
            net = total[NET, worker] + network_change(arrays, counts, worker, layer, 1)
            counts[layer, worker] += 1
            for back in range(-1, layers):
                # what happens at the other worker can only add to this
                if left[1 + back] - before >= best - 1e-12:
                    continue
                if back < 0:
                    if free[worker] == 0:
                        continue
                    change = left[0] + _over(arrays, worker, ceiling, cpu, io, net) - before
                else:
                    if back == layer or counts[back, worker] <= arrays.pinned[back, worker]:
                        continue
                    gone = (
                        network_change(arrays, counts, worker, back, -1) if near[layer, back] else leaving[back, worker]
                    )
                    change = (
                        left[1 + back]
                        + _over(
                            arrays,
                            worker,
                            ceiling,
                            cpu - arrays.load[CPU, back],
                            io - arrays.load[IO, back],
                            net + gone,
                        )
                        - before
                    )
                priced += 1
                is_banned = banned[layer, worker] >= step or (back >= 0 and banned[back, worst] >= step)
                if change < best - 1e-12 and (not is_banned or change < spare):
                    exchange, best = (layer, worker, back), change
            counts[layer, worker] -= 1
    return exchange, priced


@compiled
def reduce_excess(arrays: Any, counts: Any, limits: Any, steps: int, seed: int) -> Any:
    """Change `counts` in place until its costs keep the limits: (excess left, 0 is success; exchanges priced).

    Without success `counts` is the best seen on the way.
    """
    layers, workers = counts.shape
    ceiling = limits + arrays.offset + ROUNDING
    total = np.zeros((3, workers))
    free = arrays.slots.copy()
    over = np.zeros(workers)
    for worker in range(workers):
        column_load(arrays, counts, worker, total)
        free[worker] -= counts[:, worker].sum()
        over[worker] = _over(arrays, worker, ceiling, total[CPU, worker], total[IO, worker], total[NET, worker])
    best, best_counts = over.sum(), counts.copy()
    banned = np.zeros((layers, workers), np.int64)
    near = _neighbours(arrays)
    leaving = np.zeros((layers, workers))
    for worker in range(workers):
        for layer in range(layers):
            leaving[layer, worker] = network_change(arrays, counts, worker, layer, -1)
    state = np.array([np.uint64(seed) * np.uint64(2654435761) + np.uint64(88172645463325252)])
    priced = 0
    for step in range(1, steps + 1):
        if best <= 0.0:
            break
        worst = _worst_worker(over, step, state)
        spare = best - over.sum() - ROUNDING
        (layer, worker, back), looked_at = _best_exchange(
            arrays, counts, total, free, over, ceiling, worst, banned, step, spare, near, leaving
        )
        priced += looked_at
        if layer < 0:
            continue
        until = step + 3 + _next_random(state) % 8
        banned[layer, worst] = until
        counts[layer, worst] -= 1
        counts[layer, worker] += 1
        if back >= 0:
            banned[back, worker] = until
            counts[back, worker] -= 1
            counts[back, worst] += 1
        else:
            free[worst] += 1
            free[worker] -= 1
        for changed in (worst, worker):
            column_load(arrays, counts, changed, total)
            for each in range(layers):
                leaving[each, changed] = network_change(arrays, counts, changed, each, -1)
            over[changed] = _over(
                arrays, changed, ceiling, total[CPU, changed], total[IO, changed], total[NET, changed]
            )
        if over.sum() < best - ROUNDING:
            best = over.sum()
            best_counts[:] = counts
    counts[:] = best_counts
    return best, priced
