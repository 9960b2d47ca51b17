"""`attach` on the oldest Spark that is supported, with sluice's core alone; the newest has all the other tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice.errors import SluiceError
from sluice.testing.spark_versions import DEFAULT_CACHE, VERSIONS, cluster_of, make_environment, run_steps

pytestmark = [pytest.mark.spark, pytest.mark.slow]

REPOSITORY = Path(__file__).parents[2]


def test_executors_follow_the_load_on_the_oldest_spark(java: None, tmp_path: Path) -> None:
    cache = Path(os.environ.get("SLUICE_VERSIONS_CACHE", DEFAULT_CACHE))
    try:
        python = make_environment(cache, REPOSITORY, VERSIONS[0])
    except SluiceError as error:
        pytest.skip(f"pyspark {VERSIONS[0]} cannot be installed here: {error}")
    with cluster_of(python, tmp_path / "cluster", "standalone") as cluster:
        result = run_steps(python, tmp_path / "run", "decommission", cluster)
    assert result["spark"] == VERSIONS[0]
    assert (result["lost"], result["repeated"], result["attach_failed"]) == (0, 0, None), result
    counts = [count for _, count in result["executors"]]
    assert (max(counts), counts[-1]) == (3, 1), result["executors"]
