"""Chance by record number: record n of a stream is the same however the stream is cut into blocks.

SplitMix64 (Steele, Lea and Flood 2014) of the number itself: no state to carry from block to block, and fast in numpy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def numbers(first: int, count: int) -> Numbers:
    return np.arange(first, first + count, dtype=np.int64)


def bits(of: Numbers, *, seed: int, lane: int) -> Bits:
    """64 random bits per record; every lane of a record is independent of its others."""
    start = np.uint64((seed * 0xD1342543DE82EF95 + lane * 0xA0761D6478BD642F) % 2**64)
    mixed = of.view(np.uint64) * _GOLDEN
    mixed += start
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX_1
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MIX_2
    mixed ^= mixed >> np.uint64(31)
    return mixed


def below(bound: Numbers | int, drawn: Bits) -> Numbers:
    """Integers in [0, bound) from the upper half of the bits; bounds up to 2**31."""
    factor = np.uint64(bound) if isinstance(bound, int) else bound.view(np.uint64)
    return (((drawn >> np.uint64(32)) * factor) >> np.uint64(32)).view(np.int64)
