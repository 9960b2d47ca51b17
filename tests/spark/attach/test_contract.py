"""`attach` through the suite of all engines, on a real cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("contract_on_cluster.py")
REPOSITORY = Path(__file__).parents[3]


@pytest.mark.spark
@pytest.mark.slow
def test_an_attached_application_passes_the_suite_of_all_engines(cluster: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SUITE)],
        cwd=REPOSITORY,
        env={**os.environ, "SLUICE_CLUSTER_HOME": str(cluster)},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
