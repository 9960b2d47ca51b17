"""What a pipeline needs from the topics between its operators: the embedded one and Kafka's are two of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

Position = Any
"""Up to where somebody has read, as JSON data: a number of records, or for Kafka one offset per partition."""
BatchSink = Callable[["DataFrame", int], None]
"""What `foreachBatch` takes. It writes every batch once, however often Spark replays it."""


@runtime_checkable
class StreamSink(Protocol):
    """A sink that a query can also write to without a call of Python per batch."""

    def write_from(self, writer: DataStreamWriter, spark: SparkSession) -> DataStreamWriter: ...


class RecordLog(Protocol):
    """One topic. Offsets count records; Kafka's also count the mark that ends each transaction."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def locator(self) -> str:
        """How another process opens it: `open_log`. Holds no secret."""
        ...

    def append(self, table: pa.Table, *, producer: str, batch_id: int) -> object | None:
        """Append atomically; None if the producer has committed this (or a later) batch id before."""
        ...

    def last_batch_id(self, producer: str) -> int | None:
        """The newest batch a program has committed by `append`: where it goes on after a crash."""
        ...

    def register(self, consumer: str) -> Position:
        """Add a consumer at the oldest record kept, if it is new; its position."""
        ...

    def unregister(self, consumer: str) -> None: ...

    def consumers(self) -> dict[str, int]:
        """Every registered consumer with the offset up to which it is done, over all partitions."""
        ...

    def position(self, consumer: str) -> Position: ...

    def end_position(self) -> Position: ...

    def acknowledge(self, consumer: str, position: Position) -> None:
        """The consumer will never ask again for a record before `position`."""
        ...

    def end_offset(self) -> int:
        """One past the newest committed record, over all partitions."""
        ...

    def lag_records(self, consumer: str) -> int: ...

    def slowest_lag_records(self) -> int: ...

    def waiting_s(self, consumer: str, unix_s: float) -> float:
        """How long the record that the consumer reads next, or reads now, has been there; 0 if there is none."""
        ...

    def records_between(self, start: Position, end: Position) -> int:
        """Exactly so many records; may have to read them."""
        ...


class TopicStore(Protocol):
    """All topics of one pipeline, by the names of their datasets."""

    def create(self, name: str, schema: StructType) -> RecordLog:
        """Make the topic, or open it if it is there."""
        ...

    def stream(
        self, spark: SparkSession, name: str, *, consumer: str, control: Path, places: Path | None = None
    ) -> DataFrame:
        """Its records as a streaming DataFrame, steered by the `ReaderControl` saved at `control`.

        `places` is the file that says where its tasks run; without it they run anywhere.
        """
        ...

    def sink(self, name: str, *, producer: str, same_tasks: bool = True) -> BatchSink:
        """`same_tasks` says that a replayed batch has the tasks it had before, as operators' have."""
        ...

    def close(self) -> None:
        """Nothing is written any more; its topics can still be asked."""
        ...


def open_log(locator: str | Path) -> RecordLog:
    """A topic that another process has made."""
    locator = str(locator)
    if locator.startswith("kafka://"):
        from sluice.spark.kafka.log import KafkaTopic

        return KafkaTopic.open(locator)
    from sluice.spark.topic.log import Topic

    return Topic.open(Path(locator))
