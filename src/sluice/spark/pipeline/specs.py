"""What a pipeline is made of, as it was written: sources, operators, sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Function = Callable[..., "DataFrame"]
Generate = Callable[[int, int, float, int], "pa.Table"]
"""`generate(first, count, time_s, seed)`: records number `first` to `first + count` arriving at Unix time `time_s`.

The same arguments must give the same records, so that a run can be repeated and its output computed independently.
"""
Read = Callable[["SparkSession"], "DataFrame"]
"""Gives a streaming DataFrame."""
Write = Callable[["DataFrame", int], None]
"""As `foreachBatch` takes it: the records of a batch, and the batch's number."""
EXACTLY_ONCE_FORMATS = ("parquet", "json", "csv", "orc", "text")
"""Spark's file sinks list the files of a finished batch, and those of a replayed one once."""
Watermark = tuple[str, str]
"""An event-time column and how late a record may be: `("at", "10 seconds")`."""
OutputMode = Literal["append", "update"]

DEFAULT_STATE_PARTITIONS = 8


@dataclass(frozen=True)
class Dataset:
    """What a source or an operator produces; usable as an input, as its name is."""

    name: str


@dataclass(frozen=True, kw_only=True)
class SourceSpec:
    """Where records come from: a topic somebody else fills, one filled from `generate` at the workload's rate, or one
    filled by a query of its own from what `read` gives: any streaming DataFrame of the session.
    """

    name: str
    schema: StructType | str | None
    """Null for `read`, whose DataFrame has one, and for `avro`, which is one."""
    generate: Generate | None = None
    topic: str | None = None
    read: Read | None = None
    avro: str | None = None
    """The Avro schema of a topic's messages, as JSON; without it they are JSON."""


@dataclass(frozen=True, kw_only=True)
class SinkSpec:
    """Where what an operator produces goes: a topic (of the name `topic`), a format of Spark, or a function."""

    name: str
    operator: str
    topic: str | None = None
    format: str | None = None
    write: Write | None = None
    avro: str | None = None
    options: Mapping[str, Any]

    @property
    def is_topic(self) -> bool:
        return self.format is None and self.write is None

    @property
    def guarantee(self) -> str:
        """What a crash can do to the output, in one sentence."""
        if self.is_topic:
            return "exactly once"
        if self.format in EXACTLY_ONCE_FORMATS:
            return f"exactly once, for readers of the folder that use Spark ({self.format})"
        if self.write is not None:
            return "at least once: a batch that is replayed has the same batch id, by which the function can know it"
        return f"at least once: Spark's sink {self.format!r} writes a replayed batch again"


@dataclass(frozen=True, kw_only=True)
class OperatorSpec:
    """One operator as it was written; `stateful=None` is found out from its query plan."""

    name: str
    function: Function
    inputs: tuple[str, ...]
    stateful: bool | None = None
    min_parallelism: int = 1
    max_parallelism: int | None = None
    slot_rate: float | None = None
    slot_efficiency: Callable[[int], float] | None = None
    watermarks: Mapping[str, Watermark]
    output_mode: OutputMode = "append"
    state_partitions: int = DEFAULT_STATE_PARTITIONS
    chain: bool = False

    def slot_rate_at(self, parallelism: int) -> float | None:
        """Of one of so many slots: `slot_rate` is that of a single one."""
        if self.slot_rate is None or self.slot_efficiency is None:
            return self.slot_rate
        return self.slot_rate * self.slot_efficiency(parallelism)
