"""Policies that need no learning stay cheap to import: the core is installed without numpy and the laboratory."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = ("databricks", "dhalion", "ds2", "flink", "hpa_cpu", "hpa_varga", "sluice", "spark_dra", "static", "threshold")
HEAVY = (
    "numpy",
    "scipy",
    "numba",
    "sklearn",
    "pandas",
    "pyarrow",
    "plotly",
    "pyspark",
    "sluice.learning",
    "sluice.lab",
    "sluice.placement",
)


@pytest.mark.parametrize("module", LIGHT)
def test_a_light_policy_imports_nothing_heavy(module: str) -> None:
    program = f"import sys, sluice.policies.{module}; print(*sorted({set(HEAVY)!r} & sys.modules.keys()))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []
