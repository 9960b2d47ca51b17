"""Data files of a topic: plain Parquet, written and read by Spark's JVM without a Python worker, opened by any tool.

What Python writes and reads is here; `java/` does the same in tasks. A file is described by whoever wrote it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sluice.spark.topic.files import CorruptTopicError

RECORDS_PER_ROW_GROUP = 65_536
"""A reader of a part of a file decodes whole row groups: large ones compress well, small ones waste less."""


@dataclass(frozen=True)
class Segment:
    """A data file as its commit describes it. `file` is relative to the topic's `segments` folder."""

    file: str
    records: int
    size_bytes: int
    crc32: int


@dataclass(frozen=True)
class Slice:
    """Some consecutive records of one segment: all a task needs to know to read them."""

    path: str
    segment: Segment
    skip: int
    records: int


def write_segment(root: Path, path: Path, table: pa.Table) -> Segment:
    """What the commit has to remember of the file; its checksum is that of what was to be written."""
    buffer = pa.BufferOutputStream()
    pq.write_table(
        table,
        buffer,
        row_group_size=RECORDS_PER_ROW_GROUP,
        compression="none",
        write_statistics=False,
        version="2.6",
        coerce_timestamps="us",
    )
    content = buffer.getvalue()
    path.write_bytes(content)
    return Segment(path.relative_to(root).as_posix(), table.num_rows, content.size, zlib.crc32(content))


def read_slice(piece: Slice, schema: pa.Schema, records_per_batch: int) -> Iterator[pa.RecordBatch]:
    """The records of a slice in order, after the whole file has been checked."""
    file = pq.ParquetFile(pa.BufferReader(checked_content(piece)))
    first = 0
    row_groups = []
    skip = piece.skip
    for index in range(file.num_row_groups):
        records = file.metadata.row_group(index).num_rows
        if first + records <= piece.skip:
            skip -= records
        elif first < piece.skip + piece.records:
            row_groups.append(index)
        first += records
    left = piece.records
    for batch in file.iter_batches(records_per_batch, row_groups=row_groups, use_threads=False):
        part = batch.slice(skip, left)
        skip = max(0, skip - batch.num_rows)
        left -= part.num_rows
        if part.num_rows:
            yield conform(part, schema)


def checked_content(piece: Slice) -> bytes:
    try:
        content = Path(piece.path).read_bytes()
    except FileNotFoundError:
        raise CorruptTopicError(f"{piece.path}: segment is missing, {piece.segment.records} records with it") from None
    if len(content) != piece.segment.size_bytes:
        raise CorruptTopicError(
            f"{piece.path}: torn segment, {len(content)} bytes where {piece.segment.size_bytes} were committed"
        )
    if zlib.crc32(content) != piece.segment.crc32:
        raise CorruptTopicError(f"{piece.path}: altered segment, its checksum does not match the committed one")
    return content


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same records in exactly the topic's types: a file may differ in nullability or the unit of its timestamps."""
    if batch.schema.equals(schema):
        return batch
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
