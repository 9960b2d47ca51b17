"""Records as messages: one JSON object per record unless an Avro schema is given, so that any consumer can read them.

Spark writes and reads them in the JVM (`encoded`, `decoded`); `json_values` is for programs without Spark. Timestamps
have microseconds and an offset from UTC. A message that does not fit the schema fails the query: it is not skipped.
Avro is the bare encoding of a record, without the prefix that a schema registry puts before it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

JSON_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "mode": "FAILFAST",
}
NEEDS_ESCAPE = r'["\\\x00-\x1f]'


def is_raw(schema: str) -> bool:
    """Records that are messages already: one column `value BINARY`."""
    return schema == "struct<value:binary>"


def encoded(frame: DataFrame, avro: str | None = None) -> DataFrame:
    """The records as a column `value` of bytes."""
    from pyspark.sql.avro.functions import to_avro
    from pyspark.sql.functions import struct, to_json

    columns = (frame[f"`{name}`"] for name in frame.columns)
    if avro is not None:
        return frame.select(to_avro(struct(*columns), avro).alias("value"))
    if is_raw(frame.schema.simpleString()):
        return frame
    return frame.select(to_json(struct(*columns), JSON_OPTIONS).cast("binary").alias("value"))


def decoded(frame: DataFrame, schema: StructType, avro: str | None = None) -> DataFrame:
    """The records of a column `value` of bytes."""
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import col, from_json

    if avro is not None:
        return frame.select(from_avro(col("value"), avro, {"mode": "FAILFAST"}).alias("record")).select("record.*")
    if is_raw(schema.simpleString()):
        return frame
    return frame.select(from_json(col("value").cast("string"), schema, JSON_OPTIONS).alias("record")).select("record.*")


def avro_schema(spark: SparkSession, avro: str) -> StructType:
    """The columns that records of an Avro schema have."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    nothing = spark.createDataFrame([], StructType([StructField("value", BinaryType())]))
    return decoded(nothing, nothing.schema, avro).schema


def json_values(table: pa.Table) -> list[bytes]:
    """The records of an Arrow table, column by column rather than row by row."""
    if not table.num_rows:
        return []
    if table.schema.names == ["value"] and pa.types.is_binary(table.schema.field(0).type):
        raw: list[bytes] = table.column(0).to_pylist()
        return raw
    parts: list[Any] = []
    for position, name in enumerate(table.column_names):
        parts.append(f"{'{' if position == 0 else ','}{json.dumps(name)}:")
        parts.append(_texts(table.column(position).combine_chunks()))
    joined = pc.binary_join_element_wise(*parts, "}", "")
    values: list[bytes] = joined.cast(pa.binary()).to_pylist()
    return values


def _texts(column: Any) -> Any:
    """Every value of a column as JSON."""
    kind = column.type
    is_finite = pa.types.is_floating(kind) and pc.all(pc.is_finite(column)).as_py() is not False
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or is_finite:
        texts = column.cast(pa.string())
    elif pa.types.is_string(kind) and not pc.any(pc.match_substring_regex(column, NEEDS_ESCAPE)).as_py():
        texts = pc.binary_join_element_wise('"', column, '"', "")
    elif pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        moments = column.cast(pa.timestamp("us", kind.tz and "UTC"))
        texts = pc.binary_join_element_wise('"', pc.strftime(moments, "%Y-%m-%dT%H:%M:%S"), f'{zone}"', "")
    else:
        texts = pa.array([None if value is None else _dumps(value) for value in column.to_pylist()], pa.string())
    return pc.fill_null(texts, "null")


_dumps: Callable[[Any], str] = json.JSONEncoder(default=lambda value: _plain(value), separators=(",", ":")).encode


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f") + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
