"""Databricks' enhanced autoscaling, as far as its documentation says what it does.

"Optimize the cluster utilization of pipelines with enhanced autoscaling" names the two metrics, the utilisation of task
slots and the number of tasks that wait for one, and that under-utilised nodes are shut down once their tasks are over.
The thresholds are not published; those here are parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluice.dataflow.numbers import listing, number, ratio, whole_instances
from sluice.model import Observation, OperatorMetrics, Recommendation
from sluice.protocol import Memory, policy
from sluice.registry import parameter

QUEUED = 1.0
"""Waiting tasks per instance that count as a queue: less is what any batch holds."""


@policy("databricks")
@dataclass(frozen=True, kw_only=True)
class Databricks:
    """More instances while slots are busy and tasks queue, fewer while slots are idle and none do.

    Utilisation is the busy share. A task is what an instance reads in one window, so the queue is `lag / (true rate of
    one * window)` tasks; where that is unknown, a lag that grows counts as a queue of one task per instance. What waits
    at an operator's sources waits for it too, in as many tasks per instance: the queue is the pipeline's. Up to as many
    instances as work and queue would keep at `target`, at most `largest_factor` at once; down the same way after
    `patience` windows.
    """

    high: float = parameter(0.8, "utilisation at or above which a queue brings more instances")
    low: float = parameter(0.5, "utilisation at or below which instances are released")
    target: float = parameter(0.7, "utilisation aimed at")
    largest_factor: float = parameter(2.0, "most instances after an action, as a multiple of those before")
    patience: int = parameter(4, "windows in a row that must be under-utilised before instances are released")

    decides_during_cooldown = False
    """A job that is being restarted shows idle slots."""

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high <= 1:
            raise ValueError(f"low and high must be in (0, 1] and low below high, got {self.low} and {self.high}")
        if not 0 < self.target <= 1:
            raise ValueError(f"target must be in (0, 1], got {self.target}")
        if not self.largest_factor > 1:
            raise ValueError(f"largest_factor must be above 1, got {self.largest_factor}")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1 window, got {self.patience}")

    def decide(self, observation: Observation, memory: Memory) -> tuple[Recommendation, Memory]:
        now = observation.parallelism
        idle: dict[str, int] = {}
        after: dict[str, int] = {}
        phrases: list[str] = []
        queues = queues_of(observation)
        for name, metrics in observation.operators.items():
            busy = metrics.busy if metrics.busy is not None else metrics.cpu
            if busy is None:
                continue
            busy = min(busy, 1.0)
            queued = queues[name] * now[name]
            waiting = queues[name] >= QUEUED
            idle[name] = memory.get("idle", {}).get(name, 0) + 1 if busy <= self.low and not waiting else 0
            if busy >= self.high and waiting:
                wanted = now[name] * busy / self.target + queued * self.target
                after[name] = whole_instances(min(wanted, now[name] * self.largest_factor))
            elif idle[name] >= self.patience:
                after[name] = min(now[name], whole_instances(now[name] * busy / self.target))
            phrases.append(f"{name} {number(busy)} busy, {number(queued)} tasks waiting")
        kept = {"idle": {name: min(count, self.patience) for name, count in idle.items()}}
        changes = {name: count for name, count in after.items() if count != now[name]}
        if not phrases:
            return Recommendation.hold(f"databricks: no utilisation known of any of {len(now)} operators"), kept
        if not changes:
            return Recommendation.hold(f"databricks: no change: {listing(phrases)}"), kept
        changed = listing(f"{name} {now[name]} -> {count}" for name, count in changes.items())
        return Recommendation(parallelism=now | changes, reason=f"databricks: {changed}: {listing(phrases)}"), kept


def queues_of(observation: Observation) -> dict[str, float]:
    """Tasks that wait for a slot of every operator, per instance."""
    queues: dict[str, float] = {}
    topology = observation.topology
    for name in topology.order:
        metrics = observation.operators[name]
        own = queued_tasks(metrics, observation.interval_s) / metrics.parallelism
        queues[name] = max([own, *(queues[before] for before in topology.predecessors[name])])
    return queues


def queued_tasks(metrics: OperatorMetrics, interval_s: float) -> float:
    """Tasks that wait for a slot; 0 where nothing tells of any."""
    tasks = ratio(metrics.lag, (metrics.per_instance_rate() or 0.0) * interval_s)
    if tasks is not None:
        return tasks
    return QUEUED * metrics.parallelism if (metrics.lag_rate or 0.0) > 0 else 0.0
