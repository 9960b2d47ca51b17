"""A topic as a sink of any output mode: `df.writeStream.foreachBatch(TopicSink(path, producer="map"))`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from sluice.spark.topic.classes import TOPIC_SOURCE, load_classes
from sluice.spark.topic.log import Topic


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema to create a topic with for DataFrames of this type; every column may be null."""
    found = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([field.with_nullable(True) for field in found])


@dataclass(frozen=True)
class TopicSink:
    """Appends each micro-batch once, however often Spark replays it. The tasks write, the commit is one rename."""

    topic: Path
    producer: str

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        last_batch_id = self._open.last_batch_id(self.producer)
        if last_batch_id is not None and batch_id <= last_batch_id:
            # replayed after a crash: the records are there, but state and watermark still have to be brought forward
            batch.write.format("noop").mode("overwrite").save()
            return
        load_classes(batch.sparkSession)
        batch.write.format(TOPIC_SOURCE).options(**self._options, batch=str(batch_id)).mode("append").save()

    def write_from(self, writer: DataStreamWriter, spark: SparkSession) -> DataStreamWriter:
        """The same without a call of Python per batch but its commit; in every output mode."""
        load_classes(spark)
        return writer.format(TOPIC_SOURCE).options(**self._options)

    @property
    def _options(self) -> dict[str, str]:
        return {"path": str(self.topic), "producer": self.producer}

    @cached_property
    def _open(self) -> Topic:
        return Topic.open(self.topic)
