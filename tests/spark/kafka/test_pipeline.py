"""Pipelines over a real broker: exact output through rescales, and through a writer that dies in a transaction."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sluice.control.engine import wait
from sluice.errors import BadInputError
from sluice.model import Target
from sluice.spark.kafka.choice import chosen_broker
from sluice.spark.kafka.commits import Part, PartWriter, markers_end, read_markers
from sluice.spark.kafka.connection import Broker
from sluice.spark.kafka.log import KafkaTopic
from sluice.spark.kafka.sink import part_function
from sluice.spark.kafka.store import KafkaTopics
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.job import load_pipeline
from sluice.testing.answers.check import check_query
from sluice.testing.answers.reference import ANSWERS
from sluice.testing.exactly_once.rescaling import QUICK, drained, wait_until
from sluice.testing.kafka import make_topic, read_frame, read_values, write_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("query", ["q1", "q8"])
def test_the_answer_is_exact_over_rescales(query: str, spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    broker = Broker(bootstrap=kafka, prefix=f"answers-{query}")
    (answer,) = [one for one in ANSWERS if one.query == query]
    checked = check_query(
        answer,
        spark,
        tmp_path / "root",
        events=6_000,
        rescales=3,
        block_count=12,
        seed=1,
        store=KafkaTopics(broker),
        output=lambda engine: read_frame(kafka, broker.name_of("out"), engine.runtime.topics["out"].schema),
    )
    assert checked.results > 0


def test_what_a_dead_writer_left_open_is_never_seen(kafka: str) -> None:
    broker = Broker(bootstrap=kafka, prefix="dead")
    for name, partitions in (("dead.commits", 1), ("dead.out", 2)):
        make_topic(kafka, name, partitions)
    part = Part("dead.out", "op", 3)
    with PartWriter(broker, part) as done, PartWriter(broker, Part("dead.out", "op", 4)) as dying:
        done.write([{"value": b"kept"}], partition=0)
        done.commit(7)
        dying.write([{"value": b"lost"}], partition=0)
        assert read_values(kafka, "dead.out", until=1) == [b"kept"]
        with PartWriter(broker, Part("dead.out", "op", 4)) as heir, PartWriter(broker, part) as next_one:
            assert (next_one.last_batch_id(), heir.last_batch_id()) == (7, -1)
            heir.write([{"value": b"written again"}], partition=0)
            heir.commit(7)
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|fatal|invalid|state"):
            dying.commit(7)
    assert read_values(kafka, "dead.out") == [b"kept", b"written again"]
    assert read_markers(broker) == {part.key: 7, "dead.out|op|4": 7}


def test_a_stage_that_runs_again_while_its_first_tasks_commit_writes_nothing_twice(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(bootstrap=kafka, prefix="again")
    for name in ("again.commits", "again.out"):
        make_topic(kafka, name, 1)
    # tasks of a stage's second try have attempt number 0 again
    task = SimpleNamespace(partitionId=lambda: 3, attemptNumber=lambda: 0)
    monkeypatch.setattr("pyspark.TaskContext.get", lambda: task)

    def run_task(batch_id: int, since: int) -> int:
        write = part_function(broker, "again.out", "op", batch_id, 1, maybe_written=True, since=since)
        values = pa.RecordBatch.from_arrays([pa.array([b"%d" % batch_id], pa.binary())], ["value"])
        (counted,) = write(iter([values]))
        return int(counted["records"][0].as_py())

    assert run_task(7, markers_end(broker)) == 1
    since = markers_end(broker)
    assert [run_task(8, since), run_task(8, since)] == [1, 1]
    assert read_values(kafka, "again.out") == [b"7", b"8"]


def test_a_prefix_that_another_run_has_used_is_refused(kafka: str, tmp_path: Path) -> None:
    """Its markers would say of the new run's first batches that they are written: they would be lost."""
    url = f"kafka://{kafka}/taken"
    first = chosen_broker("orders", url, tmp_path / "first")
    assert first is not None
    for name in ("taken.commits", "taken.out"):
        make_topic(kafka, name, 1)
    assert chosen_broker("orders", url, tmp_path / "second") == first
    with PartWriter(first, Part("taken.out", "op")) as writer:
        writer.write([{"value": b"done"}], partition=0)
        writer.commit(0)
    assert chosen_broker("orders", url, tmp_path / "first") == first
    with pytest.raises(BadInputError, match=r"'taken' on .* belong to an earlier run"):
        chosen_broker("orders", url, tmp_path / "third")


def test_a_program_appends_a_batch_once(kafka: str) -> None:
    broker = Broker(bootstrap=kafka, prefix="program")
    for name, partitions in (("program.commits", 1), ("program.batches", 1), ("program.in", 3)):
        make_topic(kafka, name, partitions)
    table = pa.table({"id": [1, 2]})
    first = KafkaTopic(broker, "program.in")
    assert first.append(table, producer="generator", batch_id=4) == 4
    again = KafkaTopic.open(first.locator)
    assert again.append(table, producer="generator", batch_id=4) is None
    assert again.last_batch_id("generator") == 4
    start = again.register("reader")
    assert again.records_between(start, again.end_position()) == 2
    assert again.lag_records("reader") == 3  # and the mark that ends the transaction
    assert again.waiting_s("reader", 2e10) > 0
    again.acknowledge("reader", again.end_position())
    assert (again.lag_records("reader"), again.waiting_s("reader", 2e10)) == (0, 0)
    for topic in (first, again):
        topic.close()


def test_messages_that_are_bytes_come_and_go_as_they_are(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    for name in ("raw-in", "raw-out"):
        make_topic(kafka, name, 1)
    write_values(kafka, "raw-in", [b"\x00\xff", b"", b"plain"])
    pipeline = Pipeline("raw")
    pipeline.source("messages", "value BINARY", topic="raw-in")
    pipeline.operator("longer", lambda messages: messages.where("length(value) > 0"), "messages")
    pipeline.sink("out", "longer", topic="raw-out")
    store = KafkaTopics(Broker(bootstrap=kafka, prefix="raw"), pipeline.named_topics())
    engine = SparkEngine(pipeline, tmp_path, slots=2, spark=spark, settings=QUICK, store=store)
    engine.start(Target(parallelism={"longer": 2}))
    try:
        wait_until(lambda: len(read_values(kafka, "raw-out")) >= 2, engine, "output")
    finally:
        engine.stop()
    assert sorted(read_values(kafka, "raw-out")) == [b"\x00\xff", b"plain"]


def test_a_source_that_fails_behind_its_commit_brings_nothing_twice(
    spark: SparkSession, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arriving = tmp_path / "in"
    arriving.mkdir()
    pipeline = Pipeline("inflow")

    @pipeline.source
    def numbers(session: SparkSession) -> DataFrame:
        return session.readStream.schema("id BIGINT").json(str(arriving))

    pipeline.operator("kept", lambda numbers: numbers, "numbers")
    pipeline.sink("out", "kept")
    noted, calls = KafkaTopic.note_batch, []

    def fail_once(topic: KafkaTopic) -> None:
        calls.append(topic.name)
        if calls.count("inflow.numbers") == 2 and topic.name == "inflow.numbers":
            raise ConnectionError("the broker went away behind the commit")
        noted(topic)

    monkeypatch.setattr(KafkaTopic, "note_batch", fail_once)
    store = KafkaTopics(Broker(bootstrap=kafka, prefix="inflow"))
    engine = SparkEngine(pipeline, tmp_path / "root", slots=2, spark=spark, settings=QUICK, store=store)
    engine.start(Target(parallelism={"kept": 1}))
    try:
        for number in (1, 2, 3):
            (arriving / f"{number}.json").write_text(json.dumps({"id": number}))
            wait_until(lambda: len(read_values(kafka, "inflow.out")) >= number and drained(engine), engine, "output")  # noqa: B023
    finally:
        engine.stop()
    assert len(engine.runtime.restarts) == 1
    assert sorted(json.loads(value)["id"] for value in read_values(kafka, "inflow.out")) == [1, 2, 3]


def test_the_example_goes_from_a_topic_of_the_user_to_another(spark: SparkSession, kafka: str, tmp_path: Path) -> None:
    for name in ("orders", "large-orders"):
        make_topic(kafka, name, 2)
    pipeline = load_pipeline(str(EXAMPLES / "pipeline_kafka.py"))
    store = KafkaTopics(Broker(bootstrap=kafka, prefix="example"), pipeline.named_topics())
    engine = SparkEngine(pipeline, tmp_path, slots=4, spark=spark, settings=QUICK, store=store)
    engine.start(Target(parallelism={"large": 3}))
    try:
        rows = pa.table({"id": range(100), "amount": [float(2 * number) for number in range(100)]})
        engine.runtime.topics["bought"].append(rows, producer="shop", batch_id=0)
        wait_until(lambda: len(read_values(kafka, "large-orders")) >= 49 and drained(engine), engine, "output")
        wait(engine, 0.1)
    finally:
        count = engine.stop()
    found = [json.loads(value)["id"] for value in read_values(kafka, "large-orders")]
    assert sorted(found) == list(range(51, 100))
    assert (count.processed, count.lost, count.duplicated) == (100, 0, 0)
