"""What is observed of a real query with a backlog agrees with what it verifiably did."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sluice import Pipeline
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.query import QuerySettings
from sluice.testing.exactly_once.rescaling import wait_until

pytestmark = pytest.mark.spark

KEYS = 100_000
PIECE = 250_000
WINDOWS = 2
TRIGGER_S = 0.5


def counting() -> Pipeline:
    """A running count on one slot that is not paced; its eight state tasks run side by side."""
    pipeline = Pipeline("counting")
    pipeline.source("numbers", "id BIGINT")

    @pipeline.operator(output_mode="update", state_partitions=8)
    def counts(numbers):
        return numbers.selectExpr(f"id % {KEYS} AS key").groupBy("key").count()

    pipeline.sink("out", counts)
    return pipeline


def test_the_true_rate_of_a_stateful_operator_is_not_below_what_it_reads(spark, tmp_path):
    settings = QuerySettings(trigger_s=TRIGGER_S, keep_output=False)
    engine = SparkEngine(counting(), tmp_path, slots=1, spark=spark, settings=settings)
    engine.start(Target(parallelism={"counts": 1}))
    topic = engine.runtime.topics["numbers"]
    pieces = 0

    def has_read(records: int) -> bool:
        """Keeps a backlog before the operator while it reads."""
        nonlocal pieces
        while topic.lag_records("counts") < 4 * PIECE:
            ids = np.arange(pieces * PIECE, (pieces + 1) * PIECE)
            topic.append(pa.table({"id": ids}, schema=topic.schema), producer="test", batch_id=pieces)
            pieces += 1
        return topic.consumers()["counts"] >= records

    known = []
    try:
        wait_until(lambda: has_read(PIECE), engine, "first records read")
        for _ in range(WINDOWS):
            engine.observe()
            begun = topic.consumers()["counts"]
            wait_until(lambda begun=begun: has_read(begun + PIECE), engine, "more records read")
            seen = engine.observe().operators["counts"]
            assert seen.lag > 0
            if seen.true_input_rate is not None:
                known.append(seen)
    finally:
        engine.stop()
    assert known
    for seen in known:
        assert seen.true_input_rate >= seen.input_rate > 0
        assert seen.true_input_rate == pytest.approx(seen.input_rate / seen.busy, rel=0.5)
