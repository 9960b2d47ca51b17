"""The mixes a plan may use, ordered by inclusion, and the cheapest path through them over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sluice.errors import BadInputError


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
        startable: NDArray[np.bool_],
        max_instances: int | None,
        max_mixes: int,
    ) -> MixLattice:
        """Mixes that carry less than `peak` without their largest instance, and all parts of the running mix."""
        order = np.argsort(-performance, kind="stable")
        tight = _enumerate(
            performance[order],
            peak,
            np.where(startable, np.iinfo(np.int64).max, running)[order],
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
    """One mix index per epoch, and what the whole way costs."""
    values, origins = _sweep(lattice.without, entry_cost, epoch_cost, capacity, loads, startup, shutdown)
    best = int(np.argmin(values))
    path = [best]
    for epoch in range(len(loads) - 1, 0, -1):
        path.append(int(origins[epoch, path[-1]]))
    return path[::-1], float(values[best])


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
        grown, found = [], 0
        carried = mixes @ performance[:done]
        largest = np.max(np.where(mixes > 0, performance[:done], 0.0), axis=1, initial=0.0)
        present = mixes.sum(axis=1)
        count = 0
        keep = np.ones(len(mixes), dtype=bool)
        while keep.any():
            grown.append(np.column_stack([mixes[keep], np.full(int(keep.sum()), count)]))
            found += len(grown[-1])
            if found > max_mixes:
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


@njit(cache=True)
def _sweep(  # type: ignore[no-untyped-def]
    without, entry_cost, epoch_cost, capacity, loads, startup, shutdown
):
    mixes, sizes = without.shape
    epochs = len(loads)
    origins = np.empty((epochs, mixes), dtype=np.int32)
    values = entry_cost.copy()
    for epoch in range(epochs):
        origin = origins[epoch]
        for mix in range(mixes):
            origin[mix] = mix
        if epoch > 0:
            for mix in range(mixes - 1, -1, -1):
                stopped = values[mix] + shutdown
                for size in range(sizes):
                    less = without[mix, size]
                    if less >= 0 and stopped < values[less]:
                        values[less] = stopped
                        origin[less] = origin[mix]
            for mix in range(mixes):
                for size in range(sizes):
                    less = without[mix, size]
                    if less >= 0 and values[less] + startup < values[mix]:
                        values[mix] = values[less] + startup
                        origin[mix] = origin[less]
        for mix in range(mixes):
            if capacity[mix] < loads[epoch]:
                values[mix] = np.inf
            else:
                values[mix] += epoch_cost[mix]
    return values, origins
