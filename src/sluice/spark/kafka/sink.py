"""A topic of a broker as a sink of any output mode, exactly once: `writeStream.foreachBatch(KafkaSink(...))`.

Every task of a batch is a part that writes its records and its marker in one transaction. A batch that is replayed has
the same parts: the number of tasks that read is in its end offset, the number of state partitions in its checkpoint. A
part that may have been written before (by a task that failed, or by the run before) looks for its marker first. On a
cluster every part does: where a worker is lost Spark runs a stage again while tasks of its first try still commit, and
the tasks of the second try do not know that they are.
Consumers must read committed. The operator's function must give the same records for the same input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from sluice.spark.kafka.commits import Part, PartWriter, markers_end
from sluice.spark.kafka.connection import Broker
from sluice.spark.kafka.log import KafkaTopic
from sluice.spark.kafka.rows import encoded

Batches = Iterator[pa.RecordBatch]


@dataclass
class KafkaSink:
    log: KafkaTopic
    producer: str
    one_part: bool = False
    """For queries whose replayed batches may have other tasks: one task writes all records of a batch."""
    avro: str | None = None
    """The schema of its messages, where they are not JSON."""
    written_records: dict[int, int] = field(default_factory=dict)
    """Batch -> records, until somebody takes them."""
    _fresh: bool = True
    """Before the first batch of this run, which an earlier run may have begun."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        log = self.log
        alone = (batch.sparkSession.sparkContext.master or "").startswith("local")
        since = 0 if self._fresh or alone else markers_end(log.broker)
        write = part_function(
            log.broker,
            log.name,
            self.producer,
            batch_id,
            log.partitions,
            maybe_written=self._fresh or not alone,
            since=since,
        )
        messages = encoded(batch, self.avro)
        if self.one_part:
            messages = messages.repartition(1)
        counts = messages.mapInArrow(write, "records long").collect()
        records = sum(row.records for row in counts)
        if records or self._fresh:
            log.note_batch()
        self._fresh = False
        self.written_records[batch_id] = records


def part_function(
    broker: Broker, topic: str, producer: str, batch_id: int, partitions: int, *, maybe_written: bool, since: int = 0
) -> Callable[[Batches], Batches]:
    """What every task runs over its records; markers before `since` are of earlier batches."""

    def write(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        again = maybe_written or context.attemptNumber() > 0
        records, writer, is_written = 0, None, False
        with ExitStack() as opened:
            for batch in batches:
                records += batch.num_rows
                if writer is None and batch.num_rows:
                    writer = opened.enter_context(PartWriter(broker, Part(topic, producer, part)))
                    is_written = again and writer.last_batch_id(since) >= batch_id
                if writer is not None and not is_written:
                    values = batch.column(0).to_pylist()
                    writer.write([{"value": value} for value in values], (batch_id + part) % partitions)
            if writer is not None:
                writer.commit(batch_id)
        yield pa.RecordBatch.from_arrays([pa.array([records], pa.int64())], ["records"])

    return write
