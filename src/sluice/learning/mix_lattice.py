"""The mixes a plan may use, ordered by inclusion, and the cheapest path through them over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.errors import BadInputError

ROUNDING = 1e-12

_Step = tuple[NDArray[np.int64], NDArray[np.int32]]


class TooManyMixesError(BadInputError):
    """The exact optimum would take too long; the message says what to reduce."""


@dataclass(frozen=True)
class MixLattice:
    """All candidate mixes. With a mix, every part of it is in here too.

    `counts[i, r]` instances of size `r` make up mix `i`; `without[i, r]` is the mix with one less of size `r`,
    or -1. A mix always comes after its parts.
    """

    counts: NDArray[np.int64]
    without: NDArray[np.int32]

    @staticmethod
    def of_tight_mixes(
        *,
        performance: NDArray[np.float64],
        peak: float,
        running: NDArray[np.int64],
        most: NDArray[np.int64],
        max_instances: int | None,
        max_mixes: int,
    ) -> MixLattice:
        """Mixes that carry less than `peak` without their largest instance, and all parts of the running mix.

        At most `most` of every size; what runs may be more.
        """
        order = np.argsort(-performance, kind="stable")
        tight = _enumerate(
            performance[order],
            peak,
            most[order],
            max_instances,
            max_mixes,
        )
        still_running = _parts(running[order], max_instances, max_mixes)
        counts, without = _linked(np.concatenate([tight, still_running]))
        back = np.argsort(order)
        return MixLattice(counts=counts[:, back], without=without[:, back])


def cheapest_path(
    lattice: MixLattice,
    *,
    entry_cost: NDArray[np.float64],
    epoch_cost: NDArray[np.float64],
    capacity: NDArray[np.float64],
    loads: NDArray[np.float64],
    startup: float,
    shutdown: float,
) -> tuple[list[int], float]:
    """One mix index per epoch, and what the whole path costs."""
    steps = _single_steps(lattice)
    values = [np.where(capacity < loads[0], np.inf, entry_cost + epoch_cost)]
    for load in loads[1:]:
        reached = _after_changes(values[-1], steps, startup, shutdown)
        values.append(np.where(capacity < load, np.inf, reached + epoch_cost))
    path = [int(np.argmin(values[-1]))]
    for before in reversed(values[:-1]):
        path.append(_origin(lattice.counts, before, path[-1], startup, shutdown))
    return path[::-1], float(values[-1].min())


def _single_steps(lattice: MixLattice) -> list[list[_Step]]:
    """Per size and per count from 1 up: the mixes with so many instances of the size, and those with one less."""
    steps = []
    for size, counts in enumerate(lattice.counts.T):
        ordered = np.argsort(counts, kind="stable")
        levels = np.split(ordered, np.searchsorted(counts[ordered], np.arange(1, counts.max() + 1)))[1:]
        steps.append([(mixes, lattice.without[mixes, size]) for mixes in levels])
    return steps


def _after_changes(
    values: NDArray[np.float64], steps: Sequence[Sequence[_Step]], startup: float, shutdown: float
) -> NDArray[np.float64]:
    """The least value of any mix plus the cost of changing it.

    A change can be made size by size, all stops before all starts: the mixes in between are parts of its two ends.
    """
    reached = values.copy()
    for levels in steps:
        for mixes, less in reversed(levels):
            reached[less] = np.minimum(reached[less], reached[mixes] + shutdown)
    for levels in steps:
        for mixes, less in levels:
            reached[mixes] = np.minimum(reached[mixes], reached[less] + startup)
    return reached


def _origin(counts: NDArray[np.int64], values: NDArray[np.float64], mix: int, startup: float, shutdown: float) -> int:
    """The mix of the epoch before, on the cheapest path to `mix`; in a tie, few changes and large instances win."""
    change = counts[mix] - counts
    starts = np.maximum(change, 0).sum(axis=1)
    stops = starts - change.sum(axis=1)
    total = values + startup * starts + shutdown * stops
    cheapest = np.flatnonzero(total <= total.min() * (1 + ROUNDING))[::-1]
    return int(cheapest[np.argmin((starts + stops)[cheapest])])


def _enumerate(
    performance: NDArray[np.float64],
    peak: float,
    most: NDArray[np.int64],
    max_instances: int | None,
    max_mixes: int,
) -> NDArray[np.int64]:
    """Size by size, largest first: the first size present is then the largest instance of the mix."""
    mixes = np.zeros((1, 0), dtype=np.int64)
    for done, own in enumerate(performance):
        grown, listed = [], 0
        carried = mixes @ performance[:done]
        largest = np.max(np.where(mixes > 0, performance[:done], 0.0), axis=1, initial=0.0)
        present = mixes.sum(axis=1)
        count = 0
        keep = np.ones(len(mixes), dtype=bool)
        while keep.any():
            grown.append(np.column_stack([mixes[keep], np.full(int(keep.sum()), count)]))
            listed += len(grown[-1])
            if listed > max_mixes:
                raise TooManyMixesError(
                    f"more than {max_mixes} mixes of {len(performance)} sizes can carry a load of {peak:g}; "
                    "offer fewer sizes or set max_instances"
                )
            count += 1
            if count > most[done]:
                break
            rest = carried + count * own - np.maximum(largest, own)
            keep = (rest < peak) | (present + count <= 1)
            if max_instances is not None:
                keep &= present + count <= max_instances
        mixes = np.concatenate(grown)
    return mixes


def _parts(running: NDArray[np.int64], max_instances: int | None, max_mixes: int) -> NDArray[np.int64]:
    if np.prod(running + 1.0) > max_mixes:
        raise TooManyMixesError(f"the running mix has more than {max_mixes} parts; offer fewer sizes")
    parts = np.indices(tuple(running + 1)).reshape(len(running), -1).T
    return parts if max_instances is None else parts[parts.sum(axis=1) <= max_instances]


def _linked(mixes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Each mix once, in the order of a number whose digits are its counts, so that a mix follows its parts."""
    radix = mixes.max(axis=0) + 1
    if np.prod(radix.astype(float)) >= 2.0**62:
        raise TooManyMixesError(f"too many mixes to number them: up to {(radix - 1).tolist()} instances per size")
    weight = np.concatenate([np.cumprod(radix[:0:-1])[::-1], [1]]).astype(np.int64)
    keys, first = np.unique(mixes @ weight, return_index=True)
    counts = mixes[first]
    without = np.full(counts.shape, -1, dtype=np.int32)
    for size in range(counts.shape[1]):
        has = counts[:, size] > 0
        without[has, size] = np.searchsorted(keys, keys[has] - weight[size])
    return counts, without
