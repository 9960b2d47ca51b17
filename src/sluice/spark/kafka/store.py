"""Topics of a broker as the edges of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.kafka.boundaries import BATCHES
from sluice.spark.kafka.commits import COMMITS, COMMITS_SETTINGS
from sluice.spark.kafka.connection import Broker
from sluice.spark.kafka.log import KafkaTopic
from sluice.spark.kafka.new_topic import make_topic
from sluice.spark.kafka.rows import decoded
from sluice.spark.kafka.sink import KafkaSink
from sluice.spark.kafka.source import messages_from
from sluice.spark.topic.sink import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PARTITIONS = 4
"""Of topics made here. Tasks read pieces of partitions, so this bounds no parallelism."""
TOPIC_SETTINGS = {"message.timestamp.type": "LogAppendTime"}


@dataclass
class KafkaTopics:
    """By dataset: `external` names topics of others, all the rest are `PREFIX.DATASET`; `avro` has schemas."""

    broker: Broker
    external: Mapping[str, str] = field(default_factory=dict)
    avro: Mapping[str, str] = field(default_factory=dict)
    logs: dict[str, KafkaTopic] = field(default_factory=dict)
    _schemas: dict[str, StructType] = field(default_factory=dict)

    def create(self, name: str, schema: StructType) -> KafkaTopic:
        if not self.logs:
            make_topic(self.broker, self.broker.name_of(COMMITS), 1, COMMITS_SETTINGS)
            make_topic(self.broker, self.broker.name_of(BATCHES), 1)
        is_theirs = name in self.external
        topic = self.external[name] if is_theirs else self.broker.name_of(name)
        if not is_theirs:
            make_topic(self.broker, topic, PARTITIONS, TOPIC_SETTINGS)
        self.logs[name] = KafkaTopic(self.broker, topic, arrow_schema(schema), is_theirs)
        self._schemas[name] = schema
        return self.logs[name]

    def stream(
        self, spark: SparkSession, name: str, *, consumer: str, control: Path, places: Path | None = None
    ) -> DataFrame:
        messages = messages_from(spark, self.logs[name], name, consumer=consumer, control=control, places=places)
        return decoded(messages, self._schemas[name], self.avro.get(name))

    def sink(self, name: str, *, producer: str, same_tasks: bool = True) -> KafkaSink:
        return KafkaSink(self.logs[name], producer, one_part=not same_tasks, avro=self.avro.get(name))

    def close(self) -> None:
        for log in self.logs.values():
            log.close()
