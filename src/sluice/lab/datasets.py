"""All datasets of a pipeline for a number of generated records, computed at once: what operators read and emit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.pipeline.job import SparkJob
from sluice.spark.pipeline.specs import OperatorSpec

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

START_S = 1_800_000_000.0
BLOCK_S = 0.5
"""Records of so much time get the same time, as from the generator."""


@dataclass(frozen=True)
class StoredDataset:
    """A source's or an operator's records, in Parquet files."""

    path: Path
    schema: StructType
    records: int
    size_bytes: int

    def read(self, sorted_by: str | None) -> pa.Table:
        import pyarrow.parquet as pq

        table = pq.read_table(self.path)
        return table.sort_by(sorted_by) if sorted_by else table


def compute(job: SparkJob, spark: SparkSession, root: Path, *, events: int, seed: int) -> dict[str, StoredDataset]:
    """Sources in the proportions of their peak rates, then every operator on DataFrames that are no streams."""
    found: dict[str, StoredDataset] = {}
    total_rate = sum(job.peak_rates.values())
    for source, rate in job.peak_rates.items():
        path = root / source
        path.mkdir(parents=True)
        _generate(job, source, path, count=max(1, round(events * rate / total_rate)), rate=rate, seed=seed)
        found[source] = _described(spark, path)
    for name in job.pipeline.topology.order:
        spec = job.pipeline.operators[name]
        frames = [spark.read.schema(found[read].schema).parquet(str(found[read].path)) for read in spec.inputs]
        spec.function(*frames).write.parquet(str(root / name))
        found[name] = _described(spark, root / name)
    return found


def records_read(spec: OperatorSpec, datasets: Mapping[str, StoredDataset]) -> int:
    return sum(datasets[name].records for name in spec.inputs)


def _generate(job: SparkJob, source: str, path: Path, *, count: int, rate: float, seed: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    generate = job.pipeline.sources[source].generate
    assert generate is not None
    block = max(1, round(rate * BLOCK_S))
    tables = [
        generate(first, min(block, count - first), START_S + first / rate, seed) for first in range(0, count, block)
    ]
    pq.write_table(pa.concat_tables(tables), path / "part-00000.parquet")


def _described(spark: SparkSession, path: Path) -> StoredDataset:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return StoredDataset(path, spark.read.parquet(str(path)).schema, table.num_rows, table.nbytes)
