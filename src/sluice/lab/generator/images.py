"""Small images to classify: handwritten digits as PNG files of a few kilobytes."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sluice.lab.generator.draws import below, bits, numbers

IMAGE_SCHEMA = "id BIGINT, image BINARY"
NOISE = 24


@dataclass(frozen=True, kw_only=True)
class Images:
    """The 1,797 digits that come with scikit-learn (Alpaydin and Kaynak 1998), `side` pixels wide, with noise."""

    side: int = 64

    def __post_init__(self) -> None:
        if self.side < 8 or self.side % 8:
            raise ValueError(f"side must be a multiple of 8, got {self.side}")

    def __call__(self, first: int, count: int, time_s: float, seed: int) -> pa.Table:
        number = numbers(first, count)
        files = _files(self.side)
        chosen = below(len(files), bits(number, seed=seed, lane=300))
        return pa.table({"id": number, "image": files.take(chosen)})


def digits() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Pixels from 0 to 16 in eight rows of eight, and what they show."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels


@cache
def _files(side: int) -> pa.Array:
    """Every digit once; encoding is done here and not per record, or it would be the slowest part."""
    from PIL import Image

    pixels, _ = digits()
    random = np.random.default_rng(0)
    files = []
    for digit in pixels.reshape(-1, 8, 8):
        enlarged = np.kron(digit / 16 * (255 - NOISE), np.ones((side // 8, side // 8)))
        noisy = enlarged + random.uniform(0, NOISE, enlarged.shape)
        file = io.BytesIO()
        Image.fromarray(noisy.astype(np.uint8)).save(file, "PNG")
        files.append(file.getvalue())
    return pa.array(files, pa.binary())
