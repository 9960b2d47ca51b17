"""A topic as a streaming source: exactly the wanted number of partitions, read limits, pacing, holding back."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def stream_from(spark: SparkSession, topic: Path, *, consumer: str, control: Path) -> DataFrame:
    """The records of a topic as a streaming DataFrame, steered by the `ReaderControl` saved at `control`.

    Registers the consumer and the data source if they are new. A consumer's offset is acknowledged when Spark has
    logged the batch as finished, so `lag_records` is exact between batches and counts the running batch as not done.
    """
    raise NotImplementedError
