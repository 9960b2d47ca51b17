"""What a run survives: its own stop, a failing operator, a failing rescale, and being asked for the impossible."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sluice import Pipeline
from sluice.errors import BadInputError
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.failure import PAUSES_S, OperatorFailedError
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.pipeline.runtime import RescaleResult
from sluice.spark.session import TASK_TRIES
from sluice.spark.topic import Topic
from sluice.testing.exactly_once.jobs import to_table
from sluice.testing.exactly_once.rescaling import QUICK, drained, read_output, same_rows, wait_until

pytestmark = pytest.mark.spark

NUMBERS = "id BIGINT, value BIGINT"


def errors(found):
    return {change.error for change in found.changes.values() if change.error}


def numbers(first: int, count: int) -> pd.DataFrame:
    ids = np.arange(first, first + count)
    return pd.DataFrame({"id": ids, "value": ids % 7})


def append(engine: SparkEngine, frame: pd.DataFrame, batch_id: int) -> None:
    topic = engine.runtime.topics["numbers"]
    topic.append(to_table(frame, topic.schema), producer="test", batch_id=batch_id)


def summing(check=lambda value: value) -> Pipeline:
    """Two operators: one row by row through Python, one with state."""
    from pyspark.sql.functions import udf

    pipeline = Pipeline("summing")
    pipeline.source("numbers", NUMBERS)

    @pipeline.operator(max_parallelism=6)
    def checked(numbers):
        return numbers.withColumn("value", udf(check, "BIGINT")("value"))

    @pipeline.operator(output_mode="update", state_partitions=3)
    def totals(checked):
        return checked.groupBy("value").count()

    pipeline.sink("out", totals)
    return pipeline


def counts(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby("value").size().reset_index(name="count")


def latest(root) -> pd.DataFrame:
    return read_output(root, "out").groupby("value", as_index=False)["count"].max()


def started(spark, root, pipeline: Pipeline | None = None, **plan: int) -> SparkEngine:
    engine = SparkEngine(pipeline or summing(), root, slots=12, spark=spark, settings=QUICK)
    engine.start(Target(parallelism={"checked": 1, "totals": 1, **plan}))
    return engine


def test_records_that_were_there_before_the_start_are_counted(spark, tmp_path):
    pipeline = summing()
    SparkEngine(pipeline, tmp_path, slots=12, spark=spark).runtime.prepare({"checked": 1, "totals": 1})
    topic = Topic.open(tmp_path / "topics" / "numbers")
    topic.append(to_table(numbers(0, 3000), topic.schema), producer="test", batch_id=0)

    engine = started(spark, tmp_path, pipeline)
    wait_until(lambda: drained(engine), engine, "drained pipeline")
    count = engine.stop()
    assert (count.arrived, count.processed, count.lost, count.duplicated) == (3000, 3000, 0, 0)


def test_a_stopped_run_goes_on_where_it_was_with_the_plan_it_had(spark, tmp_path):
    first = started(spark, tmp_path)
    append(first, numbers(0, 500), 0)
    wait_until(lambda: drained(first), first, "drained pipeline")
    assert not errors(first.reconcile(Target(parallelism={"checked": 3, "totals": 5})))
    assert first.runtime.queries["totals"].state.state_partitions == 5
    append(first, numbers(500, 500), 1)
    first.stop()

    second = started(spark, tmp_path)
    try:
        assert second.observe().parallelism == {"checked": 3, "totals": 5}
        append(second, numbers(1000, 500), 2)
        wait_until(lambda: drained(second), second, "drained pipeline")
        assert second.observe().operators["totals"].lag == 0
    finally:
        second.stop()
    same_rows(latest(tmp_path), counts(numbers(0, 1500)))


def test_a_failing_operator_is_named_with_its_traceback_and_loses_nothing(spark, tmp_path):
    def picky(value):
        if value == 6:
            raise ValueError("six is right out")
        return value

    failing = started(spark, tmp_path, summing(picky))
    append(failing, numbers(0, 5), 0)
    wait_until(lambda: drained(failing), failing, "drained pipeline")
    append(failing, numbers(5, 5), 1)
    with pytest.raises(
        OperatorFailedError, match=r"^operator 'checked' failed: ValueError: six is right out"
    ) as caught:
        wait_until(lambda: False, failing, "end")
    assert "in picky" in caught.value.details
    assert [restart.in_a_row for restart in failing.runtime.restarts] == list(range(1, len(PAUSES_S) + 1))
    assert {restart.cause for restart in failing.runtime.restarts} == {"ValueError: six is right out"}
    count = failing.stop()
    assert (count.arrived, count.processed, count.waiting, count.lost) == (10, 5, 5, 0)

    repaired = started(spark, tmp_path)
    try:
        wait_until(lambda: drained(repaired), repaired, "drained pipeline")
    finally:
        repaired.stop()
    same_rows(latest(tmp_path), counts(numbers(0, 10)))


@pytest.mark.parametrize(("failures", "restarts"), [(1, 0), (TASK_TRIES, 1)])
def test_an_operator_that_fails_for_a_while_counts_exactly(spark, tmp_path, failures, restarts):
    """One failed task is tried again by Spark; when its tries are used up, the query starts again."""
    left = tmp_path / "failures-left"
    left.write_text("x" * failures)

    def unlucky(value):
        if value == 6 and left.read_text():
            left.write_text(left.read_text()[1:])
            raise OSError("no luck")
        return value

    engine = started(spark, tmp_path / "run", summing(unlucky))
    try:
        append(engine, numbers(0, 7), 0)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
        append(engine, numbers(7, 7), 1)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
    finally:
        count = engine.stop()
    assert (count.arrived, count.processed, count.lost, count.duplicated) == (14, 14, 0, 0)
    same_rows(latest(tmp_path / "run"), counts(numbers(0, 14)))
    assert [(restart.operator, restart.cause) for restart in engine.runtime.restarts] == [
        ("checked", "OSError: no luck")
    ] * restarts


def test_a_damaged_topic_ends_the_run_at_once(spark, tmp_path):
    engine = started(spark, tmp_path)
    engine.runtime.queries["checked"].stop_at_boundary()
    append(engine, numbers(0, 5), 0)
    (segment,) = engine.runtime.topics["numbers"].segments_folder.rglob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:-1])
    engine.runtime.queries["checked"].resume()
    with pytest.raises(OperatorFailedError, match=r"'checked' failed: CorruptTopicError: .*torn segment") as caught:
        wait_until(lambda: False, engine, "end")
    assert "restart" not in str(caught.value)
    assert engine.runtime.restarts == []
    engine.stop()


def test_a_rescale_waits_for_a_failed_operator_to_be_started_again(spark, tmp_path):
    engine = started(spark, tmp_path)
    try:
        query = engine.runtime.queries["totals"]
        query.stop_at_boundary()
        query.fail(OSError("no luck"))
        refused = engine.runtime.rescale({"checked": 2, "totals": 5})
        assert refused["checked"] == RescaleResult(1, 2, detail="live, from the next batch on")
        assert refused["totals"].after == 1
        assert refused["totals"].error == "it failed and has not been started again yet: OSError: no luck"
        wait_until(lambda: query.is_active, engine, "restart")
        assert engine.runtime.rescale({"checked": 2, "totals": 5})["totals"].after == 5
        append(engine, numbers(0, 50), 0)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
    finally:
        engine.stop()
    same_rows(latest(tmp_path), counts(numbers(0, 50)))


def test_a_rewrite_that_fails_leaves_the_operator_as_it_was(spark, tmp_path, monkeypatch):
    engine = started(spark, tmp_path, totals=2)
    try:
        append(engine, numbers(0, 100), 0)
        wait_until(lambda: drained(engine), engine, "drained pipeline")

        def fails(_partitions: int) -> None:
            raise OSError("no space left on device")

        monkeypatch.setattr(engine.runtime.queries["totals"], "rewrite_state", fails)
        applied = engine.reconcile(Target(parallelism={"checked": 2, "totals": 8}))
        assert applied.requested == {"checked": 2, "totals": 2}
        assert errors(applied) == {"OSError: no space left on device"}
        assert applied.changes["checked"].error is None
        append(engine, numbers(100, 100), 1)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
        assert engine.observe().parallelism == {"checked": 2, "totals": 2}
    finally:
        engine.stop()
    same_rows(latest(tmp_path), counts(numbers(0, 200)))


def test_an_operator_that_cannot_go_back_after_a_rewrite_is_started_again(spark, tmp_path, monkeypatch):
    engine = started(spark, tmp_path, totals=2)
    try:
        append(engine, numbers(0, 100), 0)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
        query = engine.runtime.queries["totals"]

        def fails() -> None:
            raise OSError("too many processes")

        monkeypatch.setattr(query, "resume", fails)
        result = engine.runtime.rescale({"totals": 8})["totals"]
        cause = "OSError: too many processes"
        assert (result.before, result.after, result.error) == (2, 2, f"{cause}; and going back failed: {cause}")
        append(engine, numbers(100, 100), 1)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
        assert [(restart.operator, restart.cause) for restart in engine.runtime.restarts] == [("totals", cause)]
        assert (query.state.parallelism, query.state.state_partitions) == (2, 3)
    finally:
        engine.stop()
    same_rows(latest(tmp_path), counts(numbers(0, 200)))


def test_plans_that_cannot_be_run_are_refused_and_the_old_one_runs_on(spark, tmp_path):
    with pytest.raises(BadInputError, match="the target needs 14 slots, there are 12"):
        started(spark, tmp_path, checked=6, totals=8)
    engine = started(spark, tmp_path)
    try:
        refused = {
            "the target needs 14 slots, there are 12": {"checked": 6, "totals": 8},
            "operator 'checked': parallelism must be from 1 to 6, got 7": {"checked": 7, "totals": 1},
            "unknown operator 'sink'; known: checked, totals": {"checked": 1, "totals": 1, "sink": 1},
            "the target has no parallelism for operator 'totals'": {"checked": 1},
        }
        for complaint, parallelism in refused.items():
            assert errors(engine.reconcile(Target(parallelism=parallelism))) == {complaint}
        assert engine.runtime.parallelism == {"checked": 1, "totals": 1}
    finally:
        engine.stop()

    other = Pipeline("other")
    other.source("numbers", NUMBERS)
    other.sink("out", other.operator("copy", lambda numbers: numbers, "numbers"))
    engine = SparkEngine(other, tmp_path, slots=12, spark=spark)
    with pytest.raises(BadInputError, match=r"holds pipeline 'summing' .*not 'other'"):
        engine.start(Target(parallelism={"copy": 1}))


def test_a_full_topic_holds_its_writer_back_and_the_observation_says_who(spark, tmp_path):
    """The second operator is the slow one: the first is held back, the second never."""
    pipeline = Pipeline("bounded")
    pipeline.source("numbers", NUMBERS)
    pipeline.operator("fast", lambda numbers: numbers, "numbers")
    pipeline.sink("out", pipeline.operator("slow", lambda fast: fast, "fast", slot_rate=20))
    settings = QuerySettings(trigger_s=0.2, topic_bound_records=500)
    engine = SparkEngine(pipeline, tmp_path, slots=4, spark=spark, settings=settings)
    engine.start(Target(parallelism={"fast": 1, "slow": 1}))
    try:
        for piece in range(20):
            append(engine, numbers(100 * piece, 100), piece)
            wait_until(lambda at=100 * piece: position(engine, "fast") > at or held(engine) > 0, engine, "progress")
        wait_until(lambda: held(engine) > 0.5, engine, "backpressure")
        seen = engine.observe().operators
        assert seen["fast"].backpressure > 0
        assert seen["slow"].backpressure == 0
        assert seen["slow"].buffer_usage > 0
        assert seen["fast"].lag + position(engine, "fast") == 2000
        assert seen["slow"].lag <= engine.runtime.topics["fast"].end_offset()
    finally:
        engine.stop()


def position(engine: SparkEngine, operator: str) -> int:
    (topic,) = engine.runtime.queries[operator].query.inputs
    return engine.runtime.topics[topic].consumers()[operator]


def held(engine: SparkEngine) -> float:
    import time

    return engine.ledgers.of["fast"].counters(time.time()).held_back_s
