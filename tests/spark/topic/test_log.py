"""Stories of one topic, without Spark."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from sluice.errors import BadInputError
from sluice.spark.topic import CorruptTopicError, Topic
from sluice.spark.topic.log import COMMITS_BETWEEN_TRIMS

SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])


def records(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": list(ids), "word": [f"w{i % 5}" for i in ids]}, schema=SCHEMA)


def ids(topic: Topic, start: int, end: int) -> list[int]:
    return [value for batch in topic.read(start, end) for value in batch.column("id").to_pylist()]


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return Topic.create(tmp_path / "topic", SCHEMA)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_records_come_back_in_order_over_any_range(topic: Topic) -> None:
    for batch_id, count in enumerate((3, 1, 200_000, 7)):
        topic.append(records(topic.end_offset(), count), producer="gen", batch_id=batch_id)
    assert topic.end_offset() == 200_011
    for start, end in ((0, 200_011), (2, 5), (0, 1), (70_000, 70_001), (65_000, 140_000), (200_003, 200_011), (9, 9)):
        assert ids(topic, start, end) == list(range(start, end))


def test_a_batch_id_counts_once_and_by_producer(topic: Topic) -> None:
    assert topic.append(records(0, 10), producer="a", batch_id=0) is not None
    assert topic.append(records(0, 10), producer="a", batch_id=0) is None
    assert topic.append(records(10, 10), producer="b", batch_id=0) is not None
    assert topic.append(records(20, 10), producer="a", batch_id=5) is not None
    assert topic.append(records(30, 10), producer="a", batch_id=4) is None
    assert ids(topic, 0, topic.end_offset()) == list(range(30))
    assert topic.last_batch_id("a") == 5
    assert topic.last_batch_id("nobody") is None


def test_an_empty_batch_is_remembered_but_holds_nothing(topic: Topic) -> None:
    topic.append(records(0, 0), producer="a", batch_id=3)
    assert topic.end_offset() == 0
    assert topic.append(records(0, 5), producer="a", batch_id=3) is None


def test_another_process_sees_commits_and_offsets_at_once(topic: Topic) -> None:
    other = Topic.open(topic.path)
    topic.append(records(0, 4), producer="a", batch_id=0)
    assert other.end_offset() == 4
    other.register("reader")
    other.acknowledge("reader", 3)
    assert topic.lag_records("reader") == 1


def test_lag_and_arrival_need_no_data_file(topic: Topic) -> None:
    topic.register("slow")
    topic.register("fast")
    before_s = time.time()
    topic.append(records(0, 100), producer="a", batch_id=0)
    between_s = time.time()
    topic.append(records(100, 50), producer="a", batch_id=1)
    topic.acknowledge("fast", 120)
    for path in files(topic.segments_folder):
        path.unlink()
    assert topic.lag_records("fast") == 30
    assert topic.slowest_lag_records() == 150
    arrival_s = topic.arrival_time_s(99)
    assert arrival_s is not None
    assert before_s <= arrival_s <= between_s <= (topic.arrival_time_s(100) or 0)
    assert topic.arrival_time_s(150) is None


def test_an_acknowledged_offset_never_goes_back(topic: Topic) -> None:
    topic.register("reader")
    topic.append(records(0, 9), producer="a", batch_id=0)
    topic.acknowledge("reader", 9)
    topic.acknowledge("reader", 2)
    assert topic.consumers() == {"reader": 9}
    assert topic.register("reader") == 9


def test_what_the_slowest_consumer_has_read_is_deleted_and_offsets_go_on(topic: Topic) -> None:
    topic.register("slow")
    topic.register("fast")
    for batch_id in range(5):
        topic.append(records(10 * batch_id, 10), producer="a", batch_id=batch_id)
    topic.acknowledge("fast", 50)
    topic.acknowledge("slow", 29)
    assert topic.trim() == 20
    assert topic.start_offset() == 20
    assert topic.arrival_time_s(19) is None
    assert ids(topic, 20, 50) == list(range(20, 50))
    topic.acknowledge("slow", 50)
    assert topic.trim() == 30
    assert files(topic.path / "commits") == files(topic.segments_folder) == []
    reopened = Topic.open(topic.path)
    assert reopened.append(records(0, 1), producer="a", batch_id=4) is None
    assert reopened.append(records(50, 1), producer="a", batch_id=5) is not None
    assert ids(reopened, 50, 51) == [50]


def test_nothing_is_deleted_while_nobody_has_registered(topic: Topic) -> None:
    topic.append(records(0, 10), producer="a", batch_id=0)
    assert topic.trim() == 0
    assert topic.register("late") == 0


def test_files_on_disk_stay_bounded_while_batches_come_and_go(topic: Topic) -> None:
    topic.register("reader")
    most = 0
    for batch_id in range(100):
        topic.append(records(batch_id, 1), producer="a", batch_id=batch_id)
        topic.acknowledge("reader", batch_id)
        most = max(most, len(files(topic.path)))
    assert most < 50
    assert len(topic.commits()) < 20


def test_a_consumer_that_leaves_holds_nothing_back(topic: Topic) -> None:
    topic.register("gone")
    topic.register("here")
    topic.append(records(0, 10), producer="a", batch_id=0)
    topic.acknowledge("here", 10)
    topic.unregister("gone")
    assert topic.trim() == 10
    with pytest.raises(BadInputError, match=r"unknown consumer 'gone' .* known: here"):
        topic.lag_records("gone")


def test_a_crashed_attempt_leaves_nothing_behind(topic: Topic) -> None:
    crashed = topic.stage("a", 0)
    (crashed / "part-0.parquet").write_bytes(b"half a fi")
    running = topic.stage("a", 1)
    topic.append(records(0, 5), producer="a", batch_id=0)
    topic.trim()
    assert not crashed.exists()
    assert running.exists()


@pytest.mark.parametrize(
    "name",
    ["notes", "_SUCCESS", "a@1", "a@b@c", "a@0@x@y", "a@-1@" + "0" * 32, ".DS_Store", f"a@0@{'f' * 32}.bak", "@@"],
)
@pytest.mark.parametrize("is_folder", [True, False])
def test_what_the_topic_did_not_put_among_its_segments_is_left_alone(topic: Topic, name: str, is_folder: bool) -> None:
    stray = topic.segments_folder / name
    if is_folder:
        stray.mkdir()
    else:
        stray.write_text("a note")
    for batch_id in range(COMMITS_BETWEEN_TRIMS + 1):
        topic.append(records(batch_id, 1), producer="a", batch_id=batch_id)
    topic.trim()
    assert stray.exists()
    assert ids(topic, 0, topic.end_offset()) == list(range(COMMITS_BETWEEN_TRIMS + 1))


def test_what_the_topic_did_not_put_among_its_commits_is_left_alone(topic: Topic) -> None:
    topic.append(records(0, 1), producer="a", batch_id=0)
    commit = topic._log.path_of(0)
    strays = [commit.with_name(name) for name in ("0 (copy).json", "7.json", f"{commit.name}.bak")]
    for stray in strays:
        stray.write_bytes(commit.read_bytes())
    again = Topic.open(topic.path)
    again.trim()
    assert all(stray.exists() for stray in strays)
    assert ids(again, 0, again.end_offset()) == [0]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "torn segment"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"w3", b"w4")), "altered segment"),
        (lambda path: path.unlink(), "segment is missing"),
    ],
)
def test_a_damaged_segment_is_named_and_never_read(topic: Topic, damage, says: str) -> None:
    topic.append(records(0, 10), producer="a", batch_id=0)
    topic.append(records(10, 10), producer="a", batch_id=1)
    broken = next(path for path in files(topic.segments_folder) if "@1@" in str(path))
    damage(broken)
    assert ids(topic, 0, 10) == list(range(10))
    with pytest.raises(CorruptTopicError, match=says) as error:
        ids(topic, 9, 11)
    assert str(broken) in str(error.value)


def test_a_damaged_commit_is_named(topic: Topic) -> None:
    for batch_id in range(3):
        topic.append(records(batch_id, 1), producer="a", batch_id=batch_id)
    second = topic._log.path_of(1)
    content = second.read_bytes()
    second.write_bytes(content.replace(b'"records":1', b'"records":2'))
    with pytest.raises(CorruptTopicError, match=second.name):
        Topic.open(topic.path)
    second.unlink()
    with pytest.raises(CorruptTopicError, match=f"{second.name}: commit is missing"):
        Topic.open(topic.path)
    second.write_bytes(content)
    assert Topic.open(topic.path).end_offset() == 3


def test_a_range_no_longer_kept_is_an_error(topic: Topic) -> None:
    topic.append(records(0, 3), producer="a", batch_id=0)
    with pytest.raises(CorruptTopicError, match="records 2 to 5 requested, 0 to 3 kept"):
        ids(topic, 2, 5)


def test_bad_input_is_named(topic: Topic, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"id int64, word string, not of id string"):
        Topic.create(topic.path, pa.schema([("id", pa.string())]))
    with pytest.raises(BadInputError, match="takes id int64, word string, got id int64"):
        topic.append(pa.table({"id": [1]}), producer="a", batch_id=0)
    with pytest.raises(BadInputError, match=f"no topic at {tmp_path}"):
        Topic.open(tmp_path)
