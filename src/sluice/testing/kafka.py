"""Kafka in tests and benchmarks: a broker to share, and a consumer that knows nothing of sluice."""

from __future__ import annotations

import io
import time
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.json as pj

SILENCE_S = 60.0


def read_values(bootstrap: str, topic: str) -> list[bytes]:
    """Every committed message of a topic, with nothing but Kafka's own client."""
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
        while open_partitions:
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
