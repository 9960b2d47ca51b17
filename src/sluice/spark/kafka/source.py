"""A topic of a broker as a streaming source: any number of tasks, whatever its number of partitions.

A batch's ranges of offsets, partition after partition, are cut into as many equal pieces as there are tasks, so one
partition may feed several tasks and one task may read several partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import BinaryType, StructField, StructType

from sluice.spark.kafka.boundaries import Boundaries
from sluice.spark.kafka.connection import Broker
from sluice.spark.kafka.log import KafkaPosition, KafkaTopic
from sluice.spark.kafka.reading import Range, first_timestamps_s, read_ranges
from sluice.spark.placed.classes import placed_stream
from sluice.spark.topic.pacing import paced
from sluice.spark.topic.source import split_by_weight
from sluice.spark.topic.steered import Pace, SteeredReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "sluice-kafka"
MESSAGES = StructType([StructField("value", BinaryType())])


def messages_from(
    spark: SparkSession, log: KafkaTopic, name: str, *, consumer: str, control: Path, places: Path | None = None
) -> DataFrame:
    """The messages of a topic as a streaming DataFrame of bytes, steered by the `ReaderControl` at `control`."""
    log.register(consumer)
    spark.dataSource.register(KafkaSource)
    options = {"locator": log.locator, "name": name, "consumer": consumer, "control": str(control)}
    return placed_stream(spark, FORMAT, options, places)


class KafkaSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return MESSAGES

    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: N802
        options = self.options
        return KafkaStreamReader(options["locator"], options["name"], options["consumer"], Path(options["control"]))


@dataclass
class KafkaPartition(InputPartition):
    """What one task reads."""

    broker: Broker
    topic: str
    ranges: list[Range]
    pace: Pace


class KafkaStreamReader(SteeredReader):
    _boundaries: Boundaries | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_boundaries": None}

    def planned(
        self, start: KafkaPosition, end: KafkaPosition, weights: Sequence[float], pace: Pace
    ) -> list[InputPartition]:
        topic = self._topic
        return [
            KafkaPartition(topic.broker, topic.name, ranges, pace)
            for ranges in cut_ranges([(int(name), _at(start, name), end[name]) for name in end], weights)
        ]

    def limited(self, start: KafkaPosition, end: KafkaPosition, most_records: int) -> KafkaPosition:
        if not self._topic.is_ours:
            return limit_evenly(start, end, most_records)
        if self._boundaries is None:
            self._boundaries = Boundaries(self._topic.broker, self._topic.name)
        return self._boundaries.limited(start, most_records)

    def stop(self) -> None:
        if self._boundaries is not None:
            self._boundaries.close()

    def count(self, start: KafkaPosition, end: KafkaPosition) -> int:
        return sum(end[name] - _at(start, name) for name in end)

    def arrived_s(self, start: KafkaPosition) -> float | None:
        topic = self._topic
        found = first_timestamps_s(topic.broker, topic.name, {int(name): offset for name, offset in start.items()})
        return min(found.values(), default=None)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, KafkaPartition)
        batches = (
            pa.RecordBatch.from_arrays([pa.array([one.value() for one in messages], pa.binary())], ["value"])
            for messages in read_ranges(partition.broker, partition.topic, partition.ranges)
        )
        return paced(batches, partition.pace.slot_rate, partition.pace.head_start_s)

    @property
    def _topic(self) -> KafkaTopic:
        log = self.log
        assert isinstance(log, KafkaTopic)
        return log


def _at(position: Mapping[str, int], partition: str) -> int:
    """A partition that was added while the query ran begins with its first record."""
    return position.get(partition, 0)


def limit_evenly(start: KafkaPosition, end: KafkaPosition, most: int) -> KafkaPosition:
    """At most so many offsets further than `start`: of every partition the same share of what waits there."""
    waiting = {name: end[name] - _at(start, name) for name in end}
    total = sum(waiting.values())
    if total <= most:
        return end
    taken = {name: count * most // total for name, count in waiting.items()}
    left = most - sum(taken.values())
    for name in sorted(waiting, key=lambda name: waiting[name] - taken[name], reverse=True)[:left]:
        taken[name] += 1
    return {name: _at(start, name) + taken[name] for name in end}


def cut_ranges(ranges: list[Range], weights: Sequence[float]) -> list[list[Range]]:
    """A list for every weight, in proportion to it in offsets; at most one range per partition in each."""
    total = sum(end - start for _, start, end in ranges)
    cut: list[list[Range]] = []
    for low, high in split_by_weight(0, total, weights):
        piece, passed = [], 0
        for partition, start, end in ranges:
            first, last = max(low - passed, 0), min(high - passed, end - start)
            if first < last:
                piece.append((partition, start + first, start + last))
            passed += end - start
        cut.append(piece)
    return cut
