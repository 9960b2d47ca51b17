"""Every standard query on Spark answers what another engine makes of the same records, at any parallelism."""

from __future__ import annotations

import pytest

from sluice.testing.answers.check import check_query
from sluice.testing.answers.reference import ANSWERS


@pytest.mark.spark
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.query)
def test_the_streaming_answer_is_the_batch_answer(answer, spark, tmp_path):
    checked = check_query(answer, spark, tmp_path, events=6_000, rescales=3, seed=1)
    assert checked.results > 0
