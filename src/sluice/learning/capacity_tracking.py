"""Between capacities and parallelism: estimates of a job's capacities, and Dragster's confidence bound (eq. 18)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.learning.flow_model import FlowModel
from sluice.learning.gaussian_process import Vector

SAME_SCORE = 0.02
"""The present parallelism stays if its score is this close to the best one, in units of the largest capacity."""
LEAST_SELECTIVITY = 1e-9
AMPLE = 10.0
"""Capacity of an operator of which nothing is known, in units of its demand: it is never the bottleneck."""


@dataclass(frozen=True)
class CapacityEstimate:
    """One operator's capacity by parallelism (records/s consumed), for 1, 2, 3, ..."""

    mean: Vector
    deviation: Vector
    measured: NDArray[np.bool_]

    @property
    def most(self) -> float:
        return float(self.mean.max())

    def at(self, parallelism: int) -> float:
        return float(self.mean[min(parallelism, len(self.mean)) - 1])


@dataclass(frozen=True)
class TrackedJob:
    """The flow model with every operator's estimated capacity, in records/s emitted, topological order."""

    flow: FlowModel
    estimates: Mapping[str, CapacityEstimate]
    now: Mapping[str, int]
    selectivity: Vector
    demand: Vector
    silent: NDArray[np.bool_]
    """Operators that emit nothing: their capacity is in records/s consumed, and no price says how much they need."""
    capacity: Vector
    most: Vector

    @staticmethod
    def of(flow: FlowModel, estimates: Mapping[str, CapacityEstimate], now: Mapping[str, int]) -> TrackedJob:
        free = flow.flows(np.full(len(flow.names), np.inf))
        received = np.array([float(rates.sum()) for rates in free.received])
        emitted = np.asarray(free.demand, dtype=float)
        known = (received > 0) & (emitted > LEAST_SELECTIVITY * received)
        selectivity = np.where(known, emitted / np.where(received > 0, received, 1.0), 1.0)
        demand = np.where(known, emitted, received)
        ample = AMPLE * demand + 1.0
        capacity, most = ample.copy(), ample.copy()
        for i, name in enumerate(flow.names):
            if name in estimates:
                capacity[i] = estimates[name].at(now[name]) * selectivity[i]
                most[i] = max(estimates[name].most * selectivity[i], capacity[i])
        return TrackedJob(flow, estimates, now, selectivity, demand, ~known, capacity, most)

    @property
    def names(self) -> tuple[str, ...]:
        return self.flow.names

    @property
    def unit(self) -> float:
        """The load: prices and steps are measured in it."""
        return max([*self.flow.arrivals.values(), 1e-9])

    def carried(self, parallelism: Mapping[str, int]) -> float:
        """The share of the load's throughput that a configuration is expected to carry."""
        whole = self.throughput(AMPLE * self.demand + 1.0)
        return 1.0 if whole <= 0 else min(1.0, self.throughput(self.capacities_at(parallelism)) / whole)

    def shortage(self) -> Vector:
        """`l_i` at the present capacities: above 0 where an operator should emit more than it can."""
        return self.flow.flows(self.capacity).demand - self.capacity

    def throughput(self, capacities: Vector) -> float:
        return float(self.flow.flows(capacities).out)

    def capacities_at(self, parallelism: Mapping[str, int]) -> Vector:
        capacities = self.capacity.copy()
        for i, name in enumerate(self.names):
            if name in self.estimates:
                capacities[i] = self.estimates[name].at(parallelism[name]) * self.selectivity[i]
        return capacities

    def coverage(self, name: str, instances: int) -> float:
        """The share of its demand an operator can serve; of an unknown one, the share of its present instances."""
        if name not in self.estimates:
            return instances / self.now[name]
        i = self.names.index(name)
        return self.estimates[name].at(instances) * float(self.selectivity[i]) / max(float(self.demand[i]), 1e-9)


def exploration_weight(candidates: int, slot: int, delta: float) -> float:
    """`beta_t = 2 log(|X| t^2 pi^2 delta / 6)`."""
    return 2.0 * math.log(candidates * slot**2 * math.pi**2 * delta / 6.0)


def track(estimate: CapacityEstimate, target: float, now: int, *, slot: int, delta: float) -> int:
    """The parallelism with the largest `-|mean - target| + beta * variance`, capacities in units of the largest.

    Of those alone that may reach the target: by their mean where they were tried, by their confidence bound where
    they were not. If none may, the largest capacity.
    """
    largest = max(estimate.most, 1e-9)
    beta = exploration_weight(len(estimate.mean), slot, delta)
    mean, deviation = estimate.mean / largest, estimate.deviation / largest
    goal = min(target / largest, 1.0)
    score = -np.abs(mean - goal) + beta * deviation**2
    reached = np.where(estimate.measured, mean, mean + math.sqrt(beta) * deviation)
    score[reached < goal * (1 - 1e-9)] = -np.inf
    best = int(np.argmax(score)) + 1
    near = now <= len(score) and score[now - 1] >= score[best - 1] - SAME_SCORE and mean[now - 1] >= goal * (1 - 1e-9)
    return now if near else best
