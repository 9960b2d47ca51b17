"""A topic as a streaming source: an exact number of partitions, read limits, pacing, holding back.

Python plans, in the driver's own process; tasks read in the JVM, column by column (`java/`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from sluice.spark.placed.classes import placed_stream
from sluice.spark.topic.classes import TOPIC_SOURCE, load_classes
from sluice.spark.topic.log import Topic
from sluice.spark.topic.segments import Slice
from sluice.spark.topic.steered import Pace, Steering

Plan = dict[str, Any]
"""What one task reads: the files and their checksums, so that it needs nothing but them. See `TopicPartition.java`."""


def stream_from(
    spark: SparkSession,
    topic: Path,
    *,
    consumer: str,
    control: Path,
    name: str | None = None,
    places: Path | None = None,
) -> DataFrame:
    """The records of a topic as a streaming DataFrame, steered by the `ReaderControl` saved at `control`.

    `name` is the dataset's, if it is not that of the folder: offsets carry it.

    Registers the consumer if it is new. A consumer's offset is acknowledged when Spark has logged the batch as finished
    and asks for the next, so `lag_records` counts the running batch as not done. With `places` its partitions go where
    that file says; the classes for it must be loaded.
    """
    opened = Topic.open(topic)
    opened.register(consumer)
    load_classes(spark)
    options = {
        "path": str(topic),
        "consumer": consumer,
        "control": str(control),
        "name": name or topic.name,
        "schema": from_arrow_schema(opened.schema).json(),
    }
    return placed_stream(spark, TOPIC_SOURCE, options, places)


class TopicReader(Steering[Plan]):
    def __init__(self, path: Path, name: str, consumer: str, control: Path) -> None:
        super().__init__(str(path), name, consumer, control)

    def planned(self, start: int, end: int, weights: Sequence[float], pace: Pace) -> list[Plan]:
        return [
            {
                "slices": [_described(piece) for piece in self._topic.slices(low, high)],
                "slot_rate": pace.slot_rate,
                "head_start_s": pace.head_start_s,
                "columns": self.columns,
            }
            for low, high in split_by_weight(start, end, weights)
        ]

    def limited(self, start: int, end: int, most_records: int) -> int:
        return min(end, start + most_records)

    def count(self, start: int, end: int) -> int:
        return end - start

    def arrived_s(self, start: int) -> float | None:
        return self._topic.arrival_time_s(start)

    @property
    def _topic(self) -> Topic:
        log = self.log
        assert isinstance(log, Topic)
        return log


def _described(piece: Slice) -> dict[str, Any]:
    segment = piece.segment
    return {
        "path": piece.path,
        "records": segment.records,
        "size_bytes": segment.size_bytes,
        "crc32": segment.crc32,
        "skip": piece.skip,
        "take": piece.records,
    }


def split_by_weight(start: int, end: int, weights: Sequence[float]) -> list[tuple[int, int]]:
    """Consecutive ranges, one for every weight, in proportion; with equal weights they differ by at most one record."""
    if len(set(weights)) == 1:
        cuts = [start + (end - start) * part // len(weights) for part in range(len(weights) + 1)]
    else:
        sums = list(itertools.accumulate(weights))
        cuts = [start, *(start + int((end - start) * part / sums[-1]) for part in sums[:-1]), end]
    return list(itertools.pairwise(cuts))
