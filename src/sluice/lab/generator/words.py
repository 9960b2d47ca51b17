"""Lines of words for WordCount."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sluice.lab.generator.draws import Numbers, below, bits, numbers

LINE_SCHEMA = "line STRING"


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Every line has `words_per_line` words out of `vocabulary`; `skew` above 0 draws them by Zipf's law."""

    words_per_line: int = 5
    vocabulary: int = 10_000
    skew: float = 0.0

    def __post_init__(self) -> None:
        for name in ("words_per_line", "vocabulary"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.skew < 0:
            raise ValueError(f"skew must not be negative, got {self.skew}")

    def __call__(self, first: int, count: int, time_s: float, seed: int) -> pa.Table:
        number = numbers(first, count)
        words = [self._words(number, seed, place) for place in range(self.words_per_line)]
        return pa.table({"line": pc.binary_join_element_wise(*words, " ")})

    def _words(self, number: Numbers, seed: int, place: int) -> pa.Array:
        drawn = bits(number, seed=seed, lane=100 + place)
        if self.skew:
            chosen = np.searchsorted(_zipf(self.vocabulary, self.skew), (drawn >> np.uint64(11)) / 2**53)
        else:
            chosen = below(self.vocabulary, drawn)
        return _vocabulary(self.vocabulary).take(chosen)


@cache
def _vocabulary(size: int) -> pa.Array:
    """Pronounceable, and different from each other: a number's digits as syllables."""
    syllables = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu")
    return pa.array(["".join(syllables[int(digit)] for digit in str(n)) for n in range(size)], pa.string())


@cache
def _zipf(size: int, skew: float) -> npt.NDArray[np.float64]:
    """Cumulative shares of the words by rank; the last bound is open, so that rounding never runs past it."""
    shares = np.arange(1, size + 1, dtype=np.float64) ** -skew
    return np.asarray(np.cumsum(shares)[:-1] / shares.sum())
