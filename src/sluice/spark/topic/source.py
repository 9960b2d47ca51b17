"""A topic as a streaming source: an exact number of partitions, read limits, pacing, holding back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from sluice.spark.placed.classes import placed_stream
from sluice.spark.topic.log import RECORDS_PER_BATCH, Topic
from sluice.spark.topic.pacing import paced
from sluice.spark.topic.segments import Slice, read_slice
from sluice.spark.topic.steered import Pace, SteeredReader

FORMAT = "sluice-topic"


def stream_from(
    spark: SparkSession, topic: Path, *, consumer: str, control: Path, places: Path | None = None
) -> DataFrame:
    """The records of a topic as a streaming DataFrame, steered by the `ReaderControl` saved at `control`.

    Registers the consumer and the data source if they are new. A consumer's offset is acknowledged when Spark has
    logged the batch as finished and asks for the next, so `lag_records` counts the running batch as not done. With
    `places` its partitions go where that file says; the classes for it must be loaded.
    """
    Topic.open(topic).register(consumer)
    spark.dataSource.register(TopicSource)
    options = {"path": str(topic), "consumer": consumer, "control": str(control)}
    return placed_stream(spark, FORMAT, options, places)


class TopicSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(Topic.open(Path(self.options["path"])).schema)

    def streamReader(self, schema: StructType) -> TopicStreamReader:  # noqa: N802
        return TopicStreamReader(
            Path(self.options["path"]), self.options["consumer"], Path(self.options["control"]), schema
        )


@dataclass
class TopicPartition(InputPartition):
    """What one task reads: the files and their checksums, so that it needs nothing but them."""

    slices: list[Slice]
    slot_rate: float | None
    head_start_s: float


class TopicStreamReader(SteeredReader):
    def __init__(self, path: Path, consumer: str, control: Path, schema: StructType) -> None:
        super().__init__(str(path), path.name, consumer, control)
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def planned(self, start: int, end: int, parts: int, pace: Pace) -> list[InputPartition]:
        return [
            TopicPartition(self._topic.slices(low, high), pace.slot_rate, pace.head_start_s)
            for low, high in split_evenly(start, end, parts)
        ]

    def limited(self, start: int, end: int, most_records: int) -> int:
        return min(end, start + most_records)

    def count(self, start: int, end: int) -> int:
        return end - start

    def arrived_s(self, start: int) -> float | None:
        return self._topic.arrival_time_s(start)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TopicPartition)
        batches = (batch for piece in partition.slices for batch in read_slice(piece, self._schema, RECORDS_PER_BATCH))
        return paced(batches, partition.slot_rate, partition.head_start_s)

    @property
    def _topic(self) -> Topic:
        log = self.log
        assert isinstance(log, Topic)
        return log


def split_evenly(start: int, end: int, parts: int) -> list[tuple[int, int]]:
    """Exactly `parts` consecutive ranges that differ by at most one record."""
    cuts = [start + (end - start) * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(cuts))
