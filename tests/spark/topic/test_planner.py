"""What the JVM asks the driver's Python process about a topic. Without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from sluice.spark.topic import ReaderControl, Topic
from sluice.spark.topic.planner import TopicPlanner

SCHEMA = pa.schema([("id", pa.int64())])


def opened(folder: Path, name: str) -> tuple[TopicPlanner, Topic]:
    topic = Topic.create(folder / "a-folder", SCHEMA)
    control = folder / "control.json"
    ReaderControl(partitions=2, max_records_per_batch=60).save(control)
    planner = TopicPlanner()
    request = {"call": "open", "stream": "s", "path": str(topic.path), "name": name, "consumer": "op"}
    planner.apply(json.dumps({**request, "control": str(control)}))
    return planner, topic


def asked(planner: TopicPlanner, call: str, **given: Any) -> Any:
    reply = json.loads(planner.apply(json.dumps({"call": call, "stream": "s", **given})))
    assert "error" not in reply, reply["error"]
    return reply["answer"]


def test_offsets_carry_the_name_of_the_dataset_whatever_its_folder_is_called(tmp_path: Path) -> None:
    planner, topic = opened(tmp_path, "numbers")
    topic.append(pa.table({"id": range(100)}, schema=SCHEMA), producer="test", batch_id=0)
    first = asked(planner, "first")
    end = asked(planner, "next", start=first, limited=True)
    assert json.loads(first) == {"topic": "numbers", "offset": 0}
    assert json.loads(end) == {"topic": "numbers", "offset": 60, "partitions": 2}
    parts = asked(planner, "plan", start=first, end=end)
    assert [[piece["take"] for piece in part["slices"]] for part in parts] == [[30], [30]]


def test_without_new_records_the_offset_is_the_very_text_that_was_asked_about(tmp_path: Path) -> None:
    planner, _ = opened(tmp_path, "numbers")
    asked(planner, "first")
    start = '{"offset":  0, "topic": "numbers"}'
    assert asked(planner, "next", start=start, limited=True) == start


def test_what_a_request_raises_is_the_reply(tmp_path: Path) -> None:
    reply = json.loads(TopicPlanner().apply(json.dumps({"call": "first", "stream": "nobody's"})))
    assert "KeyError" in reply["error"]
