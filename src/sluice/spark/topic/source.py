"""A topic as a streaming source: an exact number of partitions, read limits, pacing, holding back.

Spark keeps one `TopicStreamReader` per query in a Python process beside the driver and asks it at every micro-batch;
only `read` runs in the tasks. How many partitions and rows a batch gets is therefore read anew for every batch, and a
running query changes its parallelism without a stop.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from sluice.spark.placed.classes import PLACED_SOURCE
from sluice.spark.topic.control import HeldBack, ReaderControl
from sluice.spark.topic.log import RECORDS_PER_BATCH, Topic
from sluice.spark.topic.pacing import SlotClock, paced
from sluice.spark.topic.segments import Slice, read_slice

FORMAT = "sluice-topic"
MOST_ROWS = 2**62
"""Spark asks for the default limit once, at the start; the real one is in the control file and changes."""


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
    if places is None:
        return spark.readStream.format(FORMAT).options(**options).load()
    placed = {"placed.format": FORMAT, "placed.plan": str(places)}
    return spark.readStream.format(PLACED_SOURCE).options(**options, **placed).load()


Offset = dict[str, Any]
"""`{"topic": folder name, "offset": n}`: the name tells the inputs of a join apart in Spark's progress events.

The end of a paced batch also has its `head_start_s`, so that progress events tell how long its slots worked.
"""


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


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, path: Path, consumer: str, control: Path, schema: StructType) -> None:
        self._path = path
        self._consumer = consumer
        self._control_path = control
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._topic: Topic | None = None
        self._bounded: dict[str, Topic] = {}
        self._held: HeldBack | None = None
        self._target: int | None = None
        self._slots = SlotClock(time.time())

    def initialOffset(self) -> Offset:  # noqa: N802
        return self._offset(self._open().register(self._consumer))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(MOST_ROWS)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Asked only when the batch that ended at `start` is in Spark's commit log: nothing before it is read again."""
        first = start["offset"]
        topic = self._open()
        topic.acknowledge(self._consumer, first)
        control = ReaderControl.load(self._control_path)
        if control.paused or (self._target is None and self._is_held(control)):
            self._slots.rest(time.time())
            return start
        end = topic.end_offset() if self._target is None else self._target
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows, first + (control.max_records_per_batch or MOST_ROWS))
        if end <= first:
            return start
        return {**self._offset(end), **self._head_start(control, first, end)}

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        return self._offset(self._open().end_offset())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._open().end_offset()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        if start["offset"] == end["offset"]:
            return []
        control = ReaderControl.load(self._control_path)
        return [
            TopicPartition(self._open().slices(low, high), control.slot_rate, end.get("head_start_s", 0.0))
            for low, high in split_evenly(start["offset"], end["offset"], control.partitions)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TopicPartition)
        batches = (batch for piece in partition.slices for batch in read_slice(piece, self._schema, RECORDS_PER_BATCH))
        return paced(batches, partition.slot_rate, partition.head_start_s)

    def _offset(self, offset: int) -> Offset:
        return {"topic": self._path.name, "offset": offset}

    def _head_start(self, control: ReaderControl, first: int, end: int) -> dict[str, float]:
        if control.slot_rate is None:
            return {}
        now_s = time.time()
        arrived_s = self._open().arrival_time_s(first)
        head_start_s = self._slots.head_start_s(
            now_s,
            arrived_s=now_s if arrived_s is None else arrived_s,
            records=end - first,
            rate=control.slot_rate * control.partitions,
        )
        return {"head_start_s": round(head_start_s, 3)}

    def _is_held(self, control: ReaderControl) -> bool:
        """Whether a topic this operator writes to is full; every change is noted for the runtime."""
        bounds = control.bounded_topics.items()
        held = any(self._bounded_topic(path).slowest_lag_records() > most for path, most in bounds)
        account = (self._held or HeldBack()).noting(held, time.time())
        if account is not self._held:
            account.save_beside(self._control_path)
            self._held = account
        return held

    def _bounded_topic(self, path: str) -> Topic:
        if path not in self._bounded:
            self._bounded[path] = Topic.open(Path(path))
        return self._bounded[path]

    def _open(self) -> Topic:
        if self._topic is None:
            self._topic = Topic.open(self._path)
        return self._topic

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get the reader without its open topics."""
        return {**self.__dict__, "_topic": None, "_bounded": {}}


def split_evenly(start: int, end: int, parts: int) -> list[tuple[int, int]]:
    """Exactly `parts` consecutive ranges that differ by at most one record."""
    cuts = [start + (end - start) * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(cuts))
