"""Random numbers by record number: record 1000 is the same however the stream is cut into batches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def record_hash(first: int, count: int, *, seed: int, column: int = 0) -> npt.NDArray[np.uint64]:
    """64 well-mixed bits per record and column (SplitMix64, Steele et al. 2014)."""
    start = np.uint64((seed * 1_000_003 + column * 7_919) % 2**64)
    with np.errstate(over="ignore"):
        mixed = (np.arange(first, first + count, dtype=np.uint64) + start * _GOLDEN + np.uint64(1)) * _GOLDEN
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX_1
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
        return mixed ^ (mixed >> np.uint64(31))


def record_integers(first: int, count: int, *, below: int, seed: int, column: int = 0) -> npt.NDArray[np.int64]:
    """Uniform integers from 0 to `below - 1`."""
    return (record_hash(first, count, seed=seed, column=column) % np.uint64(below)).astype(np.int64)


def record_uniform(first: int, count: int, *, seed: int, column: int = 0) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1)."""
    return (record_hash(first, count, seed=seed, column=column) >> np.uint64(11)) / float(2**53)
