"""Embedded topics as the edges of a pipeline: folders side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.topic.log import Topic
from sluice.spark.topic.sink import TopicSink, arrow_schema
from sluice.spark.topic.source import stream_from

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class EmbeddedTopics:
    """`folder_of` says where the topic of a dataset is."""

    folder_of: Callable[[str], Path]

    def create(self, name: str, schema: StructType) -> Topic:
        return Topic.create(self.folder_of(name), arrow_schema(schema))

    def stream(
        self, spark: SparkSession, name: str, *, consumer: str, control: Path, places: Path | None = None
    ) -> DataFrame:
        return stream_from(spark, self.folder_of(name), consumer=consumer, control=control, name=name, places=places)

    def sink(self, name: str, *, producer: str, same_tasks: bool = True) -> TopicSink:
        return TopicSink(self.folder_of(name), producer=producer)

    def close(self) -> None:
        """Files are open only while they are read or written."""
