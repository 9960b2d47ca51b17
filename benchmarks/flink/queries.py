"""The four queries as both engines have them, and the records they read.

Bids, auctions and persons are those of the Nexmark generator, their times evenly spread: 100,000 bids, 30,000 auctions
and 10,000 persons in a second of event time. Windows are those of the suite: ten seconds, every two for query 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from sluice import Pipeline
from sluice.lab.generator.nexmark import AUCTION_SCHEMA, BID_SCHEMA, PERSON_SCHEMA, Auctions, Bids, Persons
from sluice.lab.pipelines.nexmark.q1 import to_euros
from sluice.lab.pipelines.nexmark.q5 import hottest_auctions
from sluice.lab.pipelines.nexmark.q8 import new_sellers
from sluice.lab.pipelines.standard import ON_TIME

KEYS = 100_000
WINDOW_S, SLIDE_S = 10.0, 2.0
FIRST_S = 1_700_000_000
SEED = 1
NOWHERE = "'connector' = 'blackhole'"

Make = Callable[[int, int], pa.Table]


@dataclass(frozen=True, kw_only=True)
class Stream:
    name: str
    schema: str
    """As Spark writes it."""
    make: Make
    """So many records from a number on."""
    records: int
    """Of a round."""
    columns: str
    """As Flink writes it."""

    @property
    def has_times(self) -> bool:
        return "at TIMESTAMP" in self.schema

    def flink_table(self, folder: Path) -> str:
        watermark = ", WATERMARK FOR `at` AS `at` - INTERVAL '2' SECOND" if self.has_times else ""
        return (
            f"CREATE TEMPORARY TABLE {self.name} ({self.columns}{watermark}) WITH "
            f"('connector' = 'filesystem', 'path' = '{folder.as_uri()}', 'format' = 'parquet', "
            "'parquet.utc-timezone' = 'true')"
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One query. `results` are the columns of its output as Flink writes them."""

    name: str
    streams: tuple[Stream, ...]
    pipeline: Callable[[Mapping[str, Path], str | None], Pipeline]
    """Over these topics, into a sink of this format of Spark; without one into a topic."""
    results: str
    sql: str
    flink_settings: Mapping[str, str]

    @property
    def records(self) -> int:
        return sum(stream.records for stream in self.streams)

    def flink_statements(self, folders: Mapping[str, Path], into: str = NOWHERE) -> list[str]:
        """`into` is where the results go, as Flink writes it."""
        tables = [stream.flink_table(folders[stream.name]) for stream in self.streams]
        sink = f"CREATE TEMPORARY TABLE results ({self.results}) WITH ({into})"
        return [*tables, sink, f"INSERT INTO results {self.sql}"]


def _timed(generate: Callable[[int, int, float, int], pa.Table], per_s: int, first: int, count: int) -> pa.Table:
    table = generate(first, count, 0.0, SEED)
    micros = FIRST_S * 1_000_000 + np.arange(first, first + count) * 1_000_000 // per_s
    times = pa.array(micros).cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.column_names.index("at"), "at", times)


def _numbers(first: int, count: int) -> pa.Table:
    ids = np.arange(first, first + count)
    words = pa.array([f"word-{number}" for number in range(100)])
    return pa.table({"id": ids, "key": ids * 7919 % KEYS, "word": words.take(pa.array(ids % 100))})


BIDS = Stream(
    name="bids",
    schema=BID_SCHEMA,
    make=partial(_timed, Bids(), 100_000),
    records=40_000_000,
    columns="`auction` BIGINT, `bidder` BIGINT, `price` BIGINT, `at` TIMESTAMP(3)",
)
BIDS_OF_Q5 = replace(BIDS, records=12_000_000)
"""A round of so many takes as long as those of the quicker queries."""
NUMBERS = Stream(
    name="numbers",
    schema="id BIGINT, key BIGINT, word STRING",
    make=_numbers,
    records=40_000_000,
    columns="`id` BIGINT, `key` BIGINT, `word` STRING",
)
AUCTIONS = Stream(
    name="auctions",
    schema=AUCTION_SCHEMA,
    make=partial(_timed, Auctions(), 30_000),
    records=7_500_000,
    columns=(
        "`id` BIGINT, `item` STRING, `description` STRING, `initial_bid` BIGINT, `reserve` BIGINT, `at` TIMESTAMP(3), "
        "`expires` TIMESTAMP(3), `seller` BIGINT, `category` BIGINT"
    ),
)
PERSONS = Stream(
    name="persons",
    schema=PERSON_SCHEMA,
    make=partial(_timed, Persons(), 10_000),
    records=2_500_000,
    columns=(
        "`id` BIGINT, `name` STRING, `email` STRING, `credit_card` STRING, `city` STRING, `state` STRING, "
        "`at` TIMESTAMP(3)"
    ),
)


def _count(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("key").count()


def _over_one(
    name: str,
    stream: Stream,
    function: Callable[[DataFrame], DataFrame],
    topics: Mapping[str, Path],
    sink: str | None,
    **options: Any,
) -> Pipeline:
    made = Pipeline(name)
    made.source(stream.name, stream.schema, topic=str(topics[stream.name]))
    made.operator(name, function, stream.name, **options)
    made.sink("results", name, format=sink)
    return made


def _q8(topics: Mapping[str, Path], sink: str | None) -> Pipeline:
    made = Pipeline("q8")
    for stream in (AUCTIONS, PERSONS):
        made.source(stream.name, stream.schema, topic=str(topics[stream.name]))
    join = partial(new_sellers, window_s=WINDOW_S)
    made.operator("q8", join, "auctions", "persons", watermark=ON_TIME, state_partitions=2)
    made.sink("results", "q8", format=sink)
    return made


MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "100000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}

COMPARISONS = {
    one.name: one
    for one in (
        Comparison(
            name="q1",
            streams=(BIDS,),
            pipeline=partial(_over_one, "q1", BIDS, to_euros),
            results="auction BIGINT, bidder BIGINT, price DOUBLE, `at` TIMESTAMP(3)",
            sql="SELECT auction, bidder, price * 0.908E0, `at` FROM bids",
            flink_settings={},
        ),
        Comparison(
            name="count",
            streams=(NUMBERS,),
            pipeline=partial(_over_one, "count", NUMBERS, _count, output_mode="update", state_partitions=2),
            results="`key` BIGINT, records BIGINT",
            sql="SELECT `key`, COUNT(*) FROM numbers GROUP BY `key`",
            flink_settings=MINI_BATCH,
        ),
        Comparison(
            name="q5",
            streams=(BIDS_OF_Q5,),
            pipeline=partial(
                _over_one,
                "q5",
                BIDS_OF_Q5,
                partial(hottest_auctions, window_s=WINDOW_S, slide_s=SLIDE_S),
                watermark=ON_TIME,
                state_partitions=2,
            ),
            results="ended TIMESTAMP(3), auction BIGINT, bids BIGINT",
            sql="""
                SELECT window_end, auction, bids FROM (
                    SELECT *, ROW_NUMBER() OVER (
                        PARTITION BY window_start, window_end ORDER BY bids DESC, auction ASC) AS place
                    FROM (
                        SELECT window_start, window_end, auction, COUNT(*) AS bids
                        FROM TABLE(HOP(TABLE bids, DESCRIPTOR(`at`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
                        GROUP BY window_start, window_end, auction))
                WHERE place <= 1
            """,
            flink_settings={},
        ),
        Comparison(
            name="q8",
            streams=(AUCTIONS, PERSONS),
            pipeline=_q8,
            results="`person` BIGINT, `name` STRING, `auction` BIGINT, `reserve` BIGINT, `began` TIMESTAMP(3)",
            sql="""
                SELECT joined.id, joined.name, opened.id, opened.reserve, opened.window_start
                FROM (SELECT * FROM TABLE(TUMBLE(TABLE auctions, DESCRIPTOR(`at`), INTERVAL '10' SECOND))) opened
                JOIN (SELECT * FROM TABLE(TUMBLE(TABLE persons, DESCRIPTOR(`at`), INTERVAL '10' SECOND))) joined
                ON opened.seller = joined.id
                    AND opened.window_start = joined.window_start AND opened.window_end = joined.window_end
            """,
            flink_settings={},
        ),
    )
}
