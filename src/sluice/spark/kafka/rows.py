"""Records as messages: one JSON object per record, so that any consumer can read them.

Spark writes and reads them in the JVM (`encoded`, `decoded`); `json_values` is for programs without Spark. Timestamps
have microseconds and an offset from UTC. A message that does not fit the schema fails the query: it is not skipped.
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
    from pyspark.sql import DataFrame
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


def encoded(frame: DataFrame) -> DataFrame:
    """The records as a column `value` of bytes."""
    from pyspark.sql.functions import struct, to_json

    if is_raw(frame.schema.simpleString()):
        return frame
    value = to_json(struct(*(frame[f"`{name}`"] for name in frame.columns)), JSON_OPTIONS)
    return frame.select(value.cast("binary").alias("value"))


def decoded(frame: DataFrame, schema: StructType) -> DataFrame:
    """The records of a column `value` of bytes."""
    from pyspark.sql.functions import col, from_json

    if is_raw(schema.simpleString()):
        return frame
    return frame.select(from_json(col("value").cast("string"), schema, JSON_OPTIONS).alias("record")).select("record.*")


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
