"""Records as JSON messages, made without Spark."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pyarrow as pa

from sluice.spark.kafka.rows import json_values

AT = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone.utc)


def test_every_type_is_json_that_others_read() -> None:
    table = pa.table(
        {
            "whole": pa.array([1, None]),
            "share": [0.1, 2.0],
            "text": ['a "quoted"\nline', "plain"],
            "plain": ["x", None],
            "at": pa.array([AT, None], pa.timestamp("us", "UTC")),
            "window": [{"start": AT}, None],
            "flag": [True, None],
            "raw": [b"ab", None],
        }
    )
    first, second = map(json.loads, json_values(table))
    moment = "2026-01-02T03:04:05.000678Z"
    assert first == {
        "whole": 1,
        "share": 0.1,
        "text": 'a "quoted"\nline',
        "plain": "x",
        "at": moment,
        "window": {"start": moment},
        "flag": True,
        "raw": "YWI=",
    }
    assert {key: value for key, value in second.items() if value is not None} == {"share": 2.0, "text": "plain"}


def test_messages_that_are_bytes_already_stay_as_they_are() -> None:
    assert json_values(pa.table({"value": pa.array([b"\x00\x01"], pa.binary())})) == [b"\x00\x01"]


def test_no_records_are_no_messages() -> None:
    assert json_values(pa.table({"a": pa.array([], pa.int64())})) == []
