"""Kafka in tests and benchmarks: a broker to share, and a consumer that knows nothing of sluice."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.json as pj

from sluice.spark.cluster import lifecycle
from sluice.spark.kafka import broker, new_topic
from sluice.spark.kafka.connection import Broker
from sluice.testing.owned import own_what_is_started

SILENCE_S = 60.0


@contextmanager
def local_broker(home: Path) -> Iterator[str]:
    """The address of a broker that ends with the block, also on SIGTERM, and with this process at the latest."""
    own_what_is_started()
    try:
        yield broker.up(home).master_url
    finally:
        lifecycle.down(home)


def make_topic(bootstrap: str, name: str, partitions: int) -> None:
    new_topic.make_topic(Broker(bootstrap=bootstrap), name, partitions)


def write_values(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """As any program would: no transaction, partitions as they come."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value)
    left = producer.flush(SILENCE_S)
    producer.close()
    assert left == 0, f"{left} messages were not written"


def read_values(bootstrap: str, topic: str, *, until: int | None = None) -> list[bytes]:
    """Every committed message of a topic, or the first so many, with nothing but Kafka's own client.

    An open transaction hides the end of its partition.
    """
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "independent",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    values: list[bytes] = []
    try:
        known = consumer.list_topics(topic, timeout=SILENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in known])
        open_partitions = set(known)
        heard_s = time.monotonic()
        while open_partitions and (until is None or len(values) < until):
            assert time.monotonic() < heard_s + SILENCE_S, f"{topic}: no end of partitions {open_partitions}"
            for message in consumer.consume(10_000, 0.05):
                heard_s = time.monotonic()
                error = message.error()
                if error is None:
                    values.append(message.value() or b"")
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(message.partition())
    finally:
        consumer.close()
    return values


def read_frame(bootstrap: str, topic: str, schema: pa.Schema) -> pd.DataFrame:
    """The JSON records of a topic in these types."""
    values = read_values(bootstrap, topic)
    if not values:
        return schema.empty_table().to_pandas()
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    return pj.read_json(io.BytesIO(b"\n".join(values)), parse_options=options).cast(schema).to_pandas()
