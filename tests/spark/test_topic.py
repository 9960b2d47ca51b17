"""The topic as Spark's source and sink."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluice.spark.internals.topics import columns_used
from sluice.spark.pipeline.failure import Failure
from sluice.spark.topic import HeldBack, ReaderControl, Topic
from sluice.spark.topic.sink import TopicSink, arrow_schema
from sluice.spark.topic.source import stream_from

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.int64())])
PATIENCE_S = 120.0


class Flow:
    """One query between two topics, `source` and `out`."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.source = Topic.create(folder / "source", SCHEMA)
        self.control = folder / "control.json"
        self.query: StreamingQuery | None = None

    def feed(self, *counts: int) -> None:
        for count in counts:
            first = self.source.end_offset()
            ids = list(range(first, first + count))
            table = pa.table({"id": ids, "key": [i % 7 for i in ids]}, schema=SCHEMA)
            batch_id = (self.source.last_batch_id("test") or 0) + 1
            self.source.append(table, producer="test", batch_id=batch_id)

    def steer(self, **control) -> None:
        ReaderControl(**control).save(self.control)

    def start(self, operator: Callable[[DataFrame], DataFrame] = lambda frame: frame, mode: str = "append") -> Topic:
        frame = operator(stream_from(self.spark, self.source.path, consumer="op", control=self.control))
        out = Topic.create(self.folder / "out", arrow_schema(frame.schema))
        self.query = (
            frame.writeStream.foreachBatch(TopicSink(out.path, producer="op"))
            .outputMode(mode)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .start()
        )
        return out

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.query is None or self.query.exception() is None, self.query.exception()
            assert time.monotonic() < deadline_s, f"waited {PATIENCE_S:g} s"
            time.sleep(0.02)

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()


@pytest.fixture
def flow(spark: SparkSession, tmp_path: Path) -> Iterator[Flow]:
    made = Flow(spark, tmp_path)
    yield made
    made.stop()


def rows(topic: Topic) -> list[dict]:
    batches = list(topic.read(topic.start_offset(), topic.end_offset()))
    return pa.Table.from_batches(batches, topic.schema).to_pylist()


def tasks_per_batch(topic: Topic) -> list[int]:
    """Each task writes one file."""
    return [len(commit.segments) for commit in topic.commits()]


def test_exactly_the_tasks_and_rows_asked_for_from_the_next_batch_on(flow: Flow) -> None:
    flow.feed(100, 3, 97)
    flow.steer(partitions=3, max_records_per_batch=50)
    out = flow.start()
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    assert tasks_per_batch(out) == [3, 3, 3, 3]
    flow.steer(partitions=7, max_records_per_batch=60)
    flow.feed(120)
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    assert tasks_per_batch(out) == [3, 3, 3, 3, 7, 7]
    assert [commit.records for commit in out.commits()] == [50, 50, 50, 50, 60, 60]
    assert sorted(row["id"] for row in rows(out)) == list(range(320))


def test_update_mode_and_the_replay_of_a_batch(flow: Flow) -> None:
    flow.feed(70)
    flow.steer(partitions=2)
    out = flow.start(lambda frame: frame.groupBy("key").count(), mode="update")
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    flow.stop()
    assert sorted((row["key"], row["count"]) for row in rows(out)) == [(key, 10) for key in range(7)]
    again = flow.spark.createDataFrame([(1, 1)], "key BIGINT, count BIGINT")
    TopicSink(out.path, producer="op")(again, 0)
    assert out.end_offset() == 7


def test_a_restarted_query_goes_on_after_its_last_batch(flow: Flow) -> None:
    flow.steer(partitions=2)
    flow.feed(10)
    out = flow.start()
    flow.wait(lambda: out.end_offset() == 10)
    flow.stop()
    flow.feed(5)
    flow.start()
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    assert sorted(row["id"] for row in rows(out)) == list(range(15))


def test_a_writer_waits_while_its_slowest_consumer_is_too_far_behind(flow: Flow) -> None:
    flow.steer(partitions=1, max_records_per_batch=10)
    flow.feed(100)
    out = Topic.create(flow.folder / "out", SCHEMA)
    out.register("slow")
    flow.steer(partitions=1, max_records_per_batch=10, bounded_topics={str(out.path): 25})
    flow.start()
    flow.wait(lambda: HeldBack.beside(flow.control).since_s is not None)
    assert out.end_offset() == 30
    out.acknowledge("slow", 10)
    flow.wait(lambda: out.end_offset() == 40)
    assert HeldBack.beside(flow.control).seconds(time.time()) > 0
    out.acknowledge("slow", 40)
    out.unregister("slow")
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    assert out.end_offset() == 100
    assert HeldBack.beside(flow.control).since_s is None


def test_a_damaged_segment_fails_the_query_by_name(flow: Flow) -> None:
    flow.feed(10)
    (segment,) = flow.source.segments_folder.rglob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:-1])
    flow.steer(partitions=1)
    out = flow.start()
    query = flow.query
    assert query is not None
    deadline_s = time.monotonic() + PATIENCE_S
    while query.isActive and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert f"{segment}: torn segment" in str(query.exception())
    assert out.end_offset() == 0


def test_every_type_survives_being_written_and_read(flow: Flow) -> None:
    at = datetime.datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=datetime.UTC)
    plain = ("á", True, 1.5, Decimal("12.340"), b"\x00\xff", datetime.date(2026, 3, 1), at)
    small = (7, 300, 70_000, 0.5, at.replace(tzinfo=None), Decimal("12345678901234567890.5"))
    nested = ([1, None], {"a": 2}, (1, "x"), [[("y", None)]])
    types = (
        "s STRING, b BOOLEAN, d DOUBLE, c DECIMAL(10,3), x BINARY, day DATE, at TIMESTAMP, l ARRAY<INT>, "
        "m MAP<STRING, INT>, n STRUCT<p: INT, q: STRING>, o ARRAY<ARRAY<STRUCT<r: STRING, s: DOUBLE>>>, "
        "i8 TINYINT, i16 SMALLINT, i32 INT, f FLOAT, ntz TIMESTAMP_NTZ, big DECIMAL(38,1)"
    )
    values = plain + nested + small
    frame = flow.spark.createDataFrame([values, (None,) * len(values), values], types)
    flow.source = Topic.create(flow.folder / "typed", arrow_schema(frame.schema))
    TopicSink(flow.source.path, producer="op")(frame.coalesce(1), 0)
    flow.steer(partitions=3)
    out = flow.start()
    flow.wait(lambda: out.end_offset() == 3)
    assert rows(out) == rows(flow.source)
    assert rows(out)[0]["at"] == at
    assert rows(out)[0]["c"] == Decimal("12.340")
    assert rows(out)[1] == dict.fromkeys(out.schema.names)


def test_any_cut_through_many_row_groups_gives_every_record_once_and_in_order(flow: Flow) -> None:
    flow.feed(150_000, 1, 70_000, 3)
    flow.steer(partitions=7, max_records_per_batch=100_000)
    out = flow.start()
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    assert [row["id"] for row in rows(out)] == list(range(220_004))
    assert [commit.records for commit in out.commits()] == [100_000, 100_000, 20_004]


def failed(flow: Flow) -> Failure:
    query = flow.query
    assert query is not None
    deadline_s = time.monotonic() + PATIENCE_S
    while query.isActive and time.monotonic() < deadline_s:
        time.sleep(0.02)
    error = query.exception()
    assert error is not None
    return Failure.of(error)


def test_an_altered_segment_of_the_same_size_is_found_by_the_task_that_reads_it(flow: Flow) -> None:
    flow.feed(10)
    (segment,) = flow.source.segments_folder.rglob("*.parquet")
    content = bytearray(segment.read_bytes())
    content[20] ^= 1
    segment.write_bytes(content)
    flow.steer(partitions=1)
    out = flow.start()
    failure = failed(flow)
    assert failure.cause.startswith(f"CorruptTopicError: {segment}: altered segment")
    assert failure.pause_s(0) is None
    assert out.end_offset() == 0


def test_what_planning_raises_is_why_the_query_fails(flow: Flow) -> None:
    flow.feed(10)
    flow.control.write_text('{"partitions": 0}')
    flow.start()
    failure = failed(flow)
    says = f"control file {flow.control} cannot be used: partitions must be at least 1, got 0"
    assert failure.cause == f"BadInputError: {says}"
    assert failure.pause_s(0) is None


def test_a_query_without_a_python_function_per_batch_writes_the_same(flow: Flow) -> None:
    flow.feed(1000)
    flow.steer(partitions=3, max_records_per_batch=400)
    frame = stream_from(flow.spark, flow.source.path, consumer="op", control=flow.control).groupBy("key").count()
    out = Topic.create(flow.folder / "counts", arrow_schema(frame.schema))
    sink = TopicSink(out.path, producer="a b/c*~")
    writer = sink.write_from(frame.writeStream, flow.spark).outputMode("update")
    flow.query = writer.option("checkpointLocation", str(flow.folder / "checkpoint")).start()
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    totals: dict[int, int] = {}
    for row in rows(out):
        totals[row["key"]] = max(row["count"], totals.get(row["key"], 0))
    assert totals == {key: len(range(key, 1000, 7)) for key in range(7)}
    assert out.last_batch_id("a b/c*~") == 2
    progress = flow.query.lastProgress
    assert progress is not None
    assert progress.sink.numOutputRows == 7
    out.register("reader")
    out.acknowledge("reader", out.end_offset())
    out.trim()
    assert not list(out.segments_folder.iterdir())


def test_only_the_columns_a_query_depends_on_are_read_and_nothing_else_changes(flow: Flow) -> None:
    flow.feed(1000)
    flow.steer(partitions=3, max_records_per_batch=400)
    frame = stream_from(flow.spark, flow.source.path, consumer="op", control=flow.control)
    counted = frame.where("key > 2").groupBy("key").count()
    assert columns_used(counted, "control") == {str(flow.control): {"key"}}
    assert columns_used(frame.groupBy().count(), "control") == {str(flow.control): set()}
    assert columns_used(frame.selectExpr("id + key AS sum"), "control") == {str(flow.control): {"id", "key"}}
    assert columns_used(frame, "control") == {}
    flow.steer(partitions=3, max_records_per_batch=400, columns=["key"])
    out = flow.start(lambda read: read.selectExpr("key", "id"))
    flow.wait(lambda: flow.source.lag_records("op") == 0)
    assert rows(out) == [{"key": number % 7, "id": None} for number in range(1000)]
