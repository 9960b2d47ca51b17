"""Jobs with a known result: each has its records and computes with pandas what must come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from sluice import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVENTS = "id BIGINT, key BIGINT, value BIGINT, at TIMESTAMP"
WATERMARK = ("at", "5 seconds")
START = pd.Timestamp("2026-01-01", tz="UTC")
FLUSH_KEY = -1
"""Key of the records that only push the watermark on; filtered inside a job they would not reach the watermark."""


def events(count: int, *, keys: int, seed: int, per_second: int = 100, jitter_s: float = 3.0) -> pd.DataFrame:
    """Records in the order they arrive, event times out of order by less than the watermark's delay."""
    random = np.random.default_rng(seed)
    seconds = np.arange(count) / per_second + random.uniform(0, jitter_s, count)
    return pd.DataFrame(
        {
            "id": np.arange(count),
            "key": random.integers(0, keys, count),
            "value": random.integers(0, 1000, count),
            "at": START + pd.to_timedelta((seconds * 1e6).astype("int64"), unit="us"),
        }
    )


def flush(after: pd.DataFrame, step: int) -> pd.DataFrame:
    """One record long after all others: everything that waits for the watermark is due."""
    at = after["at"].max() + pd.Timedelta(hours=1 + step)
    return pd.DataFrame({"id": [-1 - step], "key": [FLUSH_KEY], "value": [0], "at": [at]})


def to_table(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pandas(frame, schema=schema, preserve_index=False)


@dataclass(frozen=True)
class ReferenceJob:
    """`expected` gets the input frames by source name; results are compared as multisets of rows."""

    name: str
    build: Callable[[], Pipeline]
    inputs: Callable[[int], dict[str, pd.DataFrame]]
    expected: Callable[[dict[str, pd.DataFrame]], pd.DataFrame]
    needs_flush: bool = False
    final: Callable[[pd.DataFrame], pd.DataFrame] = field(default=lambda frame: frame)
    """For update mode: the last version of every row is the result."""


def _filter_map() -> Pipeline:
    pipeline = Pipeline("filter-map")
    pipeline.source("events", EVENTS)

    @pipeline.operator
    def even(events: DataFrame) -> DataFrame:
        return events.where("value % 2 = 0")

    @pipeline.operator
    def doubled(even: DataFrame) -> DataFrame:
        return even.selectExpr("id", "value * 2 AS twice")

    pipeline.sink("out", doubled)
    return pipeline


def _filter_map_expected(inputs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    frame = inputs["events"]
    kept = frame[frame["value"] % 2 == 0]
    return pd.DataFrame({"id": kept["id"], "twice": kept["value"] * 2})


def _running_count() -> Pipeline:
    pipeline = Pipeline("running-count")
    pipeline.source("events", EVENTS)

    @pipeline.operator
    def keyed(events: DataFrame) -> DataFrame:
        return events.select("key")

    @pipeline.operator(output_mode="update", state_partitions=3)
    def count(keyed: DataFrame) -> DataFrame:
        return keyed.groupBy("key").count()

    pipeline.sink("out", count)
    return pipeline


def _running_count_expected(inputs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return inputs["events"].groupby("key").size().reset_index(name="count")


def _last_count(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.groupby("key", as_index=False)["count"].max()


def _windowed_count() -> Pipeline:
    from pyspark.sql.functions import col, count, sum, window

    pipeline = Pipeline("windowed-count")
    pipeline.source("events", EVENTS)

    @pipeline.operator(watermark=WATERMARK, state_partitions=3)
    def windows(events: DataFrame) -> DataFrame:
        grouped = events.groupBy(window("at", "10 seconds"), "key")
        totals = grouped.agg(count("*").alias("events"), sum("value").alias("total"))
        return totals.select(col("window.start").alias("start"), "key", "events", "total")

    pipeline.sink("out", windows)
    return pipeline


def _windowed_count_expected(inputs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    frame = inputs["events"].assign(start=lambda rows: rows["at"].dt.floor("10s"))
    return frame.groupby(["start", "key"], as_index=False).agg(events=("id", "size"), total=("value", "sum"))


def _session_window() -> Pipeline:
    from pyspark.sql.functions import col, count, session_window

    pipeline = Pipeline("session-window")
    pipeline.source("events", EVENTS)

    @pipeline.operator(watermark=WATERMARK, state_partitions=3)
    def sessions(events: DataFrame) -> DataFrame:
        grouped = events.groupBy(session_window("at", "2 seconds"), "key").agg(count("*").alias("events"))
        return grouped.select("key", col("session_window.start").alias("start"), "events")

    pipeline.sink("out", sessions)
    return pipeline


def _session_window_expected(inputs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    frame = inputs["events"].sort_values(["key", "at"])
    gap = frame.groupby("key")["at"].diff() >= pd.Timedelta(seconds=2)
    frame = frame.assign(session=gap.groupby(frame["key"]).cumsum())
    found = frame.groupby(["key", "session"], as_index=False).agg(start=("at", "min"), events=("id", "size"))
    return found[["key", "start", "events"]]


def _deduplication() -> Pipeline:
    pipeline = Pipeline("deduplication")
    pipeline.source("events", EVENTS)

    @pipeline.operator(watermark=("at", "2 hours"), state_partitions=3)
    def once(events: DataFrame) -> DataFrame:
        return events.dropDuplicatesWithinWatermark(["key"]).select("key")

    pipeline.sink("out", once)
    return pipeline


def _deduplication_expected(inputs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return inputs["events"][["key"]].drop_duplicates()


def _join() -> Pipeline:
    from pyspark.sql.functions import expr

    pipeline = Pipeline("join")
    pipeline.source("orders", EVENTS)
    pipeline.source("payments", EVENTS)

    @pipeline.operator(watermark={"orders": ("at", "20 seconds"), "payments": ("at", "20 seconds")}, state_partitions=3)
    def paid(orders: DataFrame, payments: DataFrame) -> DataFrame:
        order, payment = orders.alias("o"), payments.alias("p")
        near = "o.key = p.key AND p.at BETWEEN o.at AND o.at + INTERVAL 4 SECONDS"
        return order.join(payment, expr(near)).selectExpr("o.id AS order_id", "p.id AS payment_id", "o.key AS key")

    pipeline.sink("out", paid)
    return pipeline


def _join_expected(inputs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    pairs = inputs["orders"].merge(inputs["payments"], on="key", suffixes=("_o", "_p"))
    near = (pairs["at_p"] >= pairs["at_o"]) & (pairs["at_p"] <= pairs["at_o"] + pd.Timedelta(seconds=4))
    kept = pairs[near]
    return pd.DataFrame({"order_id": kept["id_o"], "payment_id": kept["id_p"], "key": kept["key"]})


def _one_input(*, keys: int) -> Callable[[int], dict[str, pd.DataFrame]]:
    return lambda count: {"events": events(count, keys=keys, seed=1)}


JOBS: list[ReferenceJob] = [
    ReferenceJob("filter-map", _filter_map, _one_input(keys=50), _filter_map_expected),
    ReferenceJob("running-count", _running_count, _one_input(keys=50), _running_count_expected, final=_last_count),
    ReferenceJob("windowed-count", _windowed_count, _one_input(keys=20), _windowed_count_expected, needs_flush=True),
    ReferenceJob("session-window", _session_window, _one_input(keys=300), _session_window_expected, needs_flush=True),
    ReferenceJob("deduplication", _deduplication, _one_input(keys=5000), _deduplication_expected),
    ReferenceJob(
        "join",
        _join,
        lambda count: {
            "orders": events(count // 2, keys=400, seed=2),
            "payments": events(count // 2, keys=400, seed=3),
        },
        _join_expected,
    ),
]
