"""A package that is not installed is missed only by the strategy that calls it, in one line that names the extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numba", "scipy", "ortools")


def run(code: str) -> str:
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return finished.stdout


def test_listing_and_choosing_strategies_imports_nothing_heavy() -> None:
    code = f"""
import sys
from sluice.placement import placers
placers.describe()
placers.create("caps")
print([name for name in {HEAVY} if name in sys.modules])
"""
    assert run(code).strip() == "[]"


@pytest.mark.parametrize(
    ("strategy", "package", "message"),
    [
        ("caps", "numba", "the placement strategy 'caps' needs the package numba: install sluice[placement]"),
        ("odrp", "ortools", "the placement strategy 'odrp' needs the package ortools: install sluice[placement]"),
        ("default", "numba", "placed"),
        ("evenly", "numba", "placed"),
    ],
)
def test_a_missing_package_is_one_line(strategy: str, package: str, message: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
from sluice.errors import BadInputError
from sluice.placement import placers
from tests.placement.brute import chain
try:
    result = placers.create({strategy!r}).place(chain(2, 3, workers=2, slots=3))
    print("placed" if result.feasible else result.reason)
except BadInputError as error:
    print(error)
"""
    assert run(code).strip() == message
