"""Avro without a registry, from a topic of others to another, in a program whose session has Spark's jar for it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import BadInputError, SluiceError
from sluice.spark.kafka import connector
from sluice.spark.pipeline.definition import Pipeline
from sluice.testing.kafka import make_topic, read_values, write_values

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "who", "type": ["null", "string"]},
    ],
}
LARGE = {**ORDER, "name": "Large", "fields": [ORDER["fields"][0], ORDER["fields"][2]]}
PIPELINE = f"""
from sluice import Pipeline

orders = Pipeline("orders")
orders.source("bought", topic="avro-in", avro={json.dumps(ORDER)!r})


@orders.operator
def large(bought):
    return bought.where("amount > 100").select("id", "who")


orders.sink("out", large, topic="avro-out", avro={json.dumps(LARGE)!r})
"""


def whole(number: int) -> bytes:
    """A long as Avro writes it."""
    left, found = number << 1, b""
    while left > 127:
        left, found = left >> 7, found + bytes([left & 127 | 128])
    return found + bytes([left])


def name(number: int) -> bytes:
    return whole(0) if number % 2 else whole(1) + whole(2) + b"me"


@pytest.mark.spark
@pytest.mark.kafka
def test_avro_of_others_is_read_and_written(kafka: str, tmp_path: Path) -> None:
    try:
        connector.avro_jars()
    except SluiceError as error:
        pytest.skip(str(error))
    for topic in ("avro-in", "avro-out"):
        make_topic(kafka, topic, 2)
    write_values(kafka, "avro-in", [whole(n) + struct.pack("<d", 2.0 * n) + name(n) for n in range(100)])
    (tmp_path / "orders.py").write_text(PIPELINE)
    words = ["run", str(tmp_path / "orders.py"), "--engine", "spark", "--topics", f"kafka://{kafka}", "--json"]
    words += ["--policy", "static", "--duration", "10", "--interval", "5", "--spark-set", "slots=2"]
    sluice = str(Path(sys.executable).with_name("sluice"))
    done = subprocess.run([sluice, *words], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["lost_records"] == 0
    assert sorted(read_values(kafka, "avro-out")) == sorted(whole(n) + name(n) for n in range(51, 100))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"avro": "{}"}, "no topic=NAME"),
        ({"avro": "record Order", "topic": "t"}, "avro must be an Avro schema as JSON text.*'record Order'"),
        ({"topic": "t"}, "needs a schema, an Avro schema, or a function"),
    ],
)
def test_a_source_says_what_its_messages_are(options: dict[str, str], why: str) -> None:
    with pytest.raises(BadInputError, match=why):
        Pipeline("orders").source("bought", **options)  # type: ignore[call-overload]
