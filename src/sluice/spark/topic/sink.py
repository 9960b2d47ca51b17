"""A topic as a sink of any output mode: `df.writeStream.foreachBatch(TopicSink(path, producer="map"))`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from sluice.spark.topic.log import Topic
from sluice.spark.topic.segments import RECORDS_PER_ROW_GROUP

WRITE_OPTIONS = {
    "compression": "none",
    "parquet.block.row.count.limit": str(RECORDS_PER_ROW_GROUP),
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
"""The folder of an attempt is seen by nobody until it is committed, so tasks may put their files there directly."""


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema to create a topic with for DataFrames of this type; every column may be null."""
    found = to_arrow_schema(schema, timezone="UTC")
    return pa.schema([field.with_nullable(True) for field in found])


@dataclass(frozen=True)
class TopicSink:
    """Appends each micro-batch once, however often Spark replays it."""

    topic: Path
    producer: str

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        last_batch_id = self._open.last_batch_id(self.producer)
        if last_batch_id is not None and batch_id <= last_batch_id:
            # replayed after a crash: the records are there, but state and watermark still have to be brought forward
            batch.write.format("noop").mode("overwrite").save()
            return
        folder = self._open.stage(self.producer, batch_id)
        batch.write.mode("append").options(**WRITE_OPTIONS).parquet(str(folder))
        self._open.commit_staged(folder, producer=self.producer, batch_id=batch_id)

    @cached_property
    def _open(self) -> Topic:
        return Topic.open(self.topic)
