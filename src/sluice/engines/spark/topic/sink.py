"""A topic as a sink of any output mode: `df.writeStream.foreachBatch(TopicSink(path, producer="map"))`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema to create a topic with for DataFrames of this type."""
    raise NotImplementedError


@dataclass(frozen=True)
class TopicSink:
    """Appends each micro-batch once, however often Spark replays it, and trims the topic now and then."""

    topic: Path
    producer: str

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        raise NotImplementedError
