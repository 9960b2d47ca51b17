"""Random rescales while records flow: the output is that of an independent computation, every time."""

from __future__ import annotations

import pytest

from sluice.testing.exactly_once.jobs import JOBS
from sluice.testing.exactly_once.rescaling import run_with_rescales

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_rescaling_loses_and_repeats_nothing(job, spark, tmp_path):
    """Every second rescale rewrites the state, the others are live."""
    run_with_rescales(
        job,
        spark,
        tmp_path,
        records=4000,
        rescales=3,
        how=lambda number: "repartition" if number % 2 else "live",
        seed=4,
    )
