"""`kill -9` of the driver, restart: nothing lost, nothing twice. `benchmarks/kills.py` does this ten times."""

from __future__ import annotations

import pytest

from sluice.testing.exactly_once.kills import kill_and_finish

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1500),  # three drivers, each with a Spark of its own
]


def test_killed_in_the_middle_of_a_rescale_and_of_a_commit(java, tmp_path):
    fates = kill_and_finish(tmp_path, "windowed-count", ("while rewriting state", "after a commit"), seed=3)
    assert fates == ["killed", "killed", "ended well"]
