"""From a placement to places: which worker every source and state partition of an operator goes to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.model import Placement


def fitted(wanted: Placement, parallelism: Mapping[str, int], slots: Mapping[str, int]) -> Placement:
    """The placement as far as its workers are there, with just the instances there are.

    What is left over goes, one by one, to the worker with the largest share of free slots; with too few slots workers
    are overfull, and tasks wait for each other.
    """
    tasks: dict[str, dict[str, int]] = {worker: {} for worker in slots}
    left: list[str] = []
    for operator, instances in parallelism.items():
        there = {worker: count for worker, count in wanted.of(operator).items() if worker in slots}
        surplus = sum(there.values()) - instances
        for worker in sorted(there, key=lambda name: -there[name]):
            dropped = max(0, min(surplus, there[worker]))
            surplus -= dropped
            if there[worker] > dropped:
                tasks[worker][operator] = there[worker] - dropped
        left += [operator] * max(0, -surplus)
    for operator in left:
        roomiest = max(slots, key=lambda name: (slots[name] - sum(tasks[name].values())) / slots[name])
        tasks[roomiest][operator] = tasks[roomiest].get(operator, 0) + 1
    heavy = {
        worker: {operator: shares[: tasks[worker].get(operator, 0)] for operator, shares in held.items()}
        for worker, held in wanted.heavy.items()
        if worker in slots
    }
    return Placement(tasks=tasks, heavy=heavy)


def source_workers(counts: Mapping[str, int]) -> list[str]:
    """The worker of every source partition of one operator: neighbours on one worker."""
    return [worker for worker in sorted(counts) for _ in range(counts[worker])]


SKEWED = 2.0
"""A partition that takes so many times the mean is skewed: then partitions are divided by weight, not by number."""
TOLERANCE = 1.2
"""A worker may keep what it has while that is up to so many times its share of the weight."""


def state_workers(
    counts: Mapping[str, float],
    partitions: int,
    before: Sequence[str] = (),
    weights: Sequence[float] = (),
    heavy: Sequence[str] = (),
) -> list[str]:
    """The worker of every state partition: as many on each as its instances' share, and as few moved as that allows.

    With more partitions than instances an instance has several, as a task of Flink has key groups. `weights` are the
    time each partition takes; with skewed keys each worker gets its share of the time. Where instances differ, `counts`
    are what a worker's are worth. `heavy` are the workers of instances that have one of the heaviest partitions and no
    other, heaviest first; they are not among the `counts`.
    """
    if heavy:
        order = sorted(range(partitions), key=lambda one: -weights[one])
        alone, others = order[: len(heavy)], sorted(order[len(heavy) :])
        was = [before[one] for one in others] if len(before) == partitions else ()
        rest = state_workers(counts, len(others), was, [weights[one] for one in others])
        found = dict(zip(alone + others, [*heavy, *rest], strict=True))
        return [found[one] for one in range(partitions)]
    if len(weights) == partitions and max(weights) * partitions > SKEWED * sum(weights):
        return _by_weight(counts, before, weights)
    quota = _shares(counts, partitions, before)
    chosen: list[str | None] = [None] * partitions
    for partition, worker in enumerate(before[:partitions]):
        if quota.get(worker, 0) > 0:
            chosen[partition] = worker
            quota[worker] -= 1
    open_places = iter([worker for worker in sorted(quota) for _ in range(quota[worker])])
    return [worker if worker is not None else next(open_places) for worker in chosen]


def _by_weight(counts: Mapping[str, float], before: Sequence[str], weights: Sequence[float]) -> list[str]:
    """Heaviest first: where it was, if that worker's share allows, else where most of the share is left."""
    total, instances = sum(weights), sum(counts.values())
    left = {worker: total * count / instances for worker, count in counts.items()}
    slack = {worker: (TOLERANCE - 1) * share for worker, share in left.items()}
    found = [""] * len(weights)
    later = []
    for partition in sorted(range(len(weights)), key=lambda one: -weights[one]):
        worker = before[partition] if partition < len(before) else None
        if worker in left and weights[partition] <= left[worker] + slack[worker]:
            found[partition] = worker
            left[worker] -= weights[partition]
        else:
            later.append(partition)
    for partition in later:
        worker = max(sorted(left), key=lambda name: left[name])
        found[partition] = worker
        left[worker] -= weights[partition]
    return found


def moved(before: Sequence[str], after: Sequence[str]) -> int:
    """Partitions whose state another worker has to load."""
    return sum(1 for old, new in zip(before, after, strict=False) if old != new)


def _shares(counts: Mapping[str, float], partitions: int, before: Sequence[str]) -> dict[str, int]:
    """Largest remainders; of equal ones those first that hold more partitions already."""
    instances = sum(counts.values())
    exact = {worker: partitions * count / instances for worker, count in counts.items()}
    quota = {worker: int(share) for worker, share in exact.items()}
    order = sorted(quota, key=lambda worker: (quota[worker] - exact[worker], -before.count(worker), worker))
    for worker in order[: partitions - sum(quota.values())]:
        quota[worker] += 1
    return quota
