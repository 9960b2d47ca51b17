"""QCESA: how many instances of which size to run in every epoch of a horizon, at the least total cost.

QEScalor paper, section 2.4, equations 1 to 3: with `n[t, r]` instances of size `r` in epoch `t`, minimise

    sum_t sum_r n[t, r] * price_r  +  startup_cost * starts  +  shutdown_cost * stops
    subject to  sum_r n[t, r] * performance_r >= load_t   for every t.

The paper's recursion splits intervals; here the same optimum is a shortest path over (epoch, mix) with three kinds
of steps: start one instance, stop one instance, go to the next epoch. The first two make a lattice that two
sweeps relax completely (all stops, then all starts), so an epoch costs time linear in the number of mixes.

What keeps the mixes few without losing the optimum:

* A size that another one beats or equals in both performance and price is never started, if any number of the other
  can be had.
* Take a cheapest plan in which no instance starts earlier than needed. The instance of a mix that started last was
  needed in its first epoch, when all the others of the mix ran too: without it, the mix carries less than the
  peak load. A mix without such an instance consists only of instances that run already.

CBA, the paper's baseline, is the same with a single size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.errors import BadInputError
from sluice.learning.mix_lattice import MixLattice, TooManyMixesError, cheapest_path

__all__ = [
    "HorizonPlan",
    "ScalingCosts",
    "SizeOption",
    "TooManyMixesError",
    "most_capacity",
    "plan_horizon",
    "plan_one_size",
    "plan_within",
    "total_cost",
]

MAX_MIXES = 1_000_000
ROUNDING = 1e-9
UNBOUNDED = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class SizeOption:
    """One instance of this size: what it processes, and what it costs per epoch. `most` bounds how many can be had."""

    name: str
    performance: float
    price: float
    most: int | None = None

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 0:
            raise BadInputError(f"size {self.name!r}: most must not be negative, got {self.most}")
        if not self.performance > 0:
            raise BadInputError(f"size {self.name!r}: performance must be above 0, got {self.performance}")
        if not self.price >= 0:
            raise BadInputError(f"size {self.name!r}: price must not be negative, got {self.price}")


@dataclass(frozen=True, kw_only=True)
class ScalingCosts:
    """What starting and stopping one instance costs, in the currency of the prices."""

    startup: float = 0.0
    shutdown: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("startup", self.startup), ("shutdown", self.shutdown)):
            if not value >= 0:
                raise BadInputError(f"{name} cost must not be negative, got {value}")

    def of_change(self, before: Mapping[str, int], after: Mapping[str, int]) -> float:
        changes = [after.get(name, 0) - before.get(name, 0) for name in before.keys() | after.keys()]
        starts = sum(max(0, change) for change in changes)
        return self.startup * starts + self.shutdown * (starts - sum(changes))


@dataclass(frozen=True, kw_only=True)
class HorizonPlan:
    """The mix of every epoch; `cost` includes the change from the running mix to the first one."""

    mixes: tuple[dict[str, int], ...]
    cost: float
    candidates: int


def plan_horizon(
    loads: Sequence[float],
    options: Sequence[SizeOption],
    costs: ScalingCosts,
    *,
    running: Mapping[str, int] | None = None,
    max_instances: int | None = None,
    max_mixes: int = MAX_MIXES,
) -> HorizonPlan:
    """The cheapest plan, exactly. At least one instance always runs; nothing is charged after the last epoch."""
    running = {name: count for name, count in (running or {}).items() if count}
    _check(loads, options, running, max_instances)
    usable = _undominated(options, running)
    lattice = MixLattice.of_tight_mixes(
        performance=np.array([option.performance for option in usable]),
        peak=max(loads),
        running=np.array([running.get(option.name, 0) for option in usable]),
        most=np.array([_most(option, options, running) for option in usable]),
        max_instances=max_instances,
        max_mixes=max_mixes,
    )
    prices = lattice.counts @ np.array([option.price for option in usable])
    capacity = lattice.counts @ np.array([option.performance for option in usable])
    allowed = lattice.counts.sum(axis=1) >= 1
    path, cost = cheapest_path(
        lattice,
        entry_cost=_change_cost(lattice.counts, running, usable, costs),
        epoch_cost=prices,
        capacity=np.where(allowed, capacity * (1 + ROUNDING) + ROUNDING, -1.0),
        loads=np.array(loads, dtype=float),
        startup=costs.startup,
        shutdown=costs.shutdown,
    )
    mixes = tuple(_named(lattice.counts[index], usable) for index in path)
    return HorizonPlan(mixes=mixes, cost=cost, candidates=len(lattice.counts))


def plan_within(
    loads: Sequence[float],
    options: Sequence[SizeOption],
    costs: ScalingCosts,
    running: Mapping[str, int],
    *,
    max_instances: int,
    max_mixes: int,
) -> HorizonPlan:
    """For loads beyond what so many instances carry, and with too many mixes for an exact answer: the nearest there is.

    A load is cut to what can be carried; the sizes that cost most per record are left out until the mixes are few.
    """
    by_value = sorted(options, key=lambda option: option.price / option.performance)
    for offered in range(len(by_value), 0, -1):
        usable = by_value[:offered]
        most = most_capacity(usable, max_instances)
        names = {option.name for option in usable}
        try:
            return plan_horizon(
                [min(load, most) for load in loads],
                usable,
                costs,
                running={size: min(count, max_instances) for size, count in running.items() if size in names},
                max_instances=max_instances,
                max_mixes=max_mixes,
            )
        except TooManyMixesError:
            continue
    raise AssertionError("a single size always has few mixes")


def plan_one_size(
    loads: Sequence[float], option: SizeOption, costs: ScalingCosts, *, running: Mapping[str, int] | None = None
) -> HorizonPlan:
    """CBA: balance running and scaling costs with instances that are all alike."""
    return plan_horizon(loads, [option], costs, running=running)


def total_cost(
    mixes: Sequence[Mapping[str, int]],
    options: Sequence[SizeOption],
    costs: ScalingCosts,
    running: Mapping[str, int] | None = None,
) -> float:
    """Equation 1 for a given plan."""
    prices = {option.name: option.price for option in options}
    before = [running or {}, *mixes[:-1]]
    return sum(
        sum(count * prices[name] for name, count in mix.items()) + costs.of_change(last, mix)
        for last, mix in zip(before, mixes, strict=True)
    )


def most_capacity(options: Sequence[SizeOption], max_instances: int | None) -> float:
    """The highest load any mix can carry."""
    left = float("inf") if max_instances is None else max_instances
    carried = 0.0
    for option in sorted(options, key=lambda option: -option.performance):
        count = left if option.most is None else min(left, option.most)
        carried, left = carried + count * option.performance, left - count
        if not left or option.most is None:
            break
    return carried


def _check(
    loads: Sequence[float], options: Sequence[SizeOption], running: Mapping[str, int], max_instances: int | None
) -> None:
    if not loads:
        raise BadInputError("a plan needs the load of at least one epoch, got none")
    if not options:
        raise BadInputError("a plan needs at least one instance size, got none")
    names = [option.name for option in options]
    if len(set(names)) != len(names):
        raise BadInputError(f"instance sizes must have different names, got {names}")
    unknown = sorted(running.keys() - set(names))
    if unknown:
        raise BadInputError(f"running instances have size {unknown[0]!r}, which is none of {names}")
    if max_instances is not None and max_instances < 1:
        raise BadInputError(f"max_instances must be at least 1, got {max_instances}")
    for load in loads:
        if not 0 <= load < float("inf"):
            raise BadInputError(f"loads must be finite and not negative, got {load}")
        if load > most_capacity(options, max_instances) * (1 + ROUNDING):
            raise BadInputError(
                f"no mix of at most {max_instances} instances carries a load of {load:g}; "
                f"the most is {most_capacity(options, max_instances):g}"
            )


def _undominated(options: Sequence[SizeOption], running: Mapping[str, int]) -> list[SizeOption]:
    return [option for option in options if running.get(option.name) or _is_startable(option, options)]


def _most(option: SizeOption, options: Sequence[SizeOption], running: Mapping[str, int]) -> int:
    there = running.get(option.name, 0)
    if not _is_startable(option, options):
        return there
    return UNBOUNDED if option.most is None else max(there, option.most)


def _is_startable(option: SizeOption, options: Sequence[SizeOption]) -> bool:
    """False if another size, of which there is any number, does at least as much for at most the price.

    Of equals, the first one stays.
    """
    position = options.index(option)
    return not any(
        other.most is None
        and other.performance >= option.performance
        and other.price <= option.price
        and ((other.performance, other.price) != (option.performance, option.price) or index < position)
        for index, other in enumerate(options)
    )


def _change_cost(
    counts: NDArray[np.int64], running: Mapping[str, int], usable: Sequence[SizeOption], costs: ScalingCosts
) -> NDArray[np.float64]:
    change = counts - np.array([running.get(option.name, 0) for option in usable])
    starts = np.maximum(change, 0).sum(axis=1)
    return np.asarray(costs.startup * starts + costs.shutdown * (starts - change.sum(axis=1)), dtype=float)


def _named(counts: NDArray[np.int64], usable: Sequence[SizeOption]) -> dict[str, int]:
    return {option.name: int(count) for option, count in zip(usable, counts, strict=True) if count}
