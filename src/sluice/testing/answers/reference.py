"""What every standard query must answer, computed by another engine over the whole input at once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from sluice.lab.pipelines import RunsOnSpark, pipelines
from sluice.spark.pipeline.job import SparkJob

Tables = dict[str, pa.Table]
START_S = 1_800_000_000.0
HOUR_S = 3600.0
NOBODY = -1


@dataclass(frozen=True)
class ReferenceAnswer:
    """`answer` gets the input tables by source name. `final` makes of a stream of updates what they amount to.

    `settings` shorten windows and lifetimes so that many of them end within the input.
    """

    query: str
    answer: Callable[[Tables], pd.DataFrame]
    settings: Mapping[str, Any] = field(default_factory=dict)
    final: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame
    flush: Callable[[SparkJob, Tables], Tables] = field(default=lambda job, tables: later(job, tables))
    """Records that come after all others and make every window end; they have no part in the answer."""

    def job(self) -> SparkJob:
        definition = pipelines.create(self.query, {**self.settings, "paced": False})
        assert isinstance(definition, RunsOnSpark), self.query
        return definition.spark()


def sql(text: str) -> Callable[[Tables], pd.DataFrame]:
    def run(tables: Tables) -> pd.DataFrame:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, table in tables.items():
                connection.register(name, table)
            return connection.sql(text).df()

    return run


def inputs(job: SparkJob, events: int, *, span_s: float = 90.0, blocks: int = 60, seed: int = 5) -> list[Tables]:
    """The sources' records in blocks as they arrive, in the proportions of the query, over `span_s` of event time."""
    total_rate = sum(job.peak_rates.values())
    made: list[Tables] = []
    for block in range(blocks):
        time_s = START_S + block * span_s / blocks
        tables = {}
        for source, rate in job.peak_rates.items():
            first, end = (int(events * rate / total_rate * part / blocks) for part in (block, block + 1))
            tables[source] = _generate(job, source, first, end - first, time_s, seed)
        made.append(tables)
    return made


def whole(blocks: list[Tables]) -> Tables:
    return {source: pa.concat_tables([block[source] for block in blocks]) for source in blocks[0]}


def nothing(_job: SparkJob, _tables: Tables) -> Tables:
    """For queries that hold nothing back."""
    return {}


def later(job: SparkJob, tables: Tables) -> Tables:
    """One record per source long after all others, at different hours so that they do not meet."""
    return {
        source: _generate(job, source, table.num_rows, 1, START_S + HOUR_S * (1 + hour), 0)
        for hour, (source, table) in enumerate(tables.items())
    }


def later_bid_of_nobody(job: SparkJob, tables: Tables) -> Tables:
    bids = later(job, tables)["bids"]
    return {"bids": bids.set_column(1, "bidder", pa.array([NOBODY]))}


def later_view(job: SparkJob, tables: Tables) -> Tables:
    """Only views reach the count, so only a view brings its watermark on."""
    numbers = itertools.count(tables["events"].num_rows)
    later_events = (_generate(job, "events", number, 1, START_S + HOUR_S, 0) for number in numbers)
    return {"events": next(e for e in later_events if json.loads(e["event"][0].as_py())["event_type"] == "view")}


def later_auction_with_bid(job: SparkJob, tables: Tables) -> Tables:
    """An auction and a bid on it: only what is joined brings the watermark of closing times on."""
    flushed = later(job, tables)
    auctions, bids = flushed["auctions"], flushed["bids"]
    bids = bids.set_column(0, "auction", auctions["id"]).set_column(3, "at", auctions["at"])
    return {"auctions": auctions, "bids": bids}


def _generate(job: SparkJob, source: str, first: int, count: int, time_s: float, seed: int) -> pa.Table:
    generate = job.pipeline.sources[source].generate
    assert generate is not None
    return generate(first, count, time_s, seed)


def comparable(frame: pd.DataFrame) -> pd.DataFrame:
    """Times as microseconds: engines differ in how they give them to pandas."""
    times = {
        name: column.dt.tz_convert("UTC").dt.tz_localize(None).astype("datetime64[us]").astype("int64")
        for name, column in frame.items()
        if isinstance(column.dtype, pd.DatetimeTZDtype)
    }
    return frame.assign(**times)


def last_update(*keys: str, by: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Of several versions of a row the one with the greatest value, which only grows."""
    return lambda frame: frame.sort_values(by).groupby(list(keys), as_index=False).last()


def _classified(tables: Tables) -> pd.DataFrame:
    """The classifier on the digits' own pixels, decoded and averaged by hand."""
    import io

    from PIL import Image

    from sluice.lab.pipelines.inference import trained

    pixels = np.stack([np.asarray(Image.open(io.BytesIO(file))) for file in tables["images"]["image"].to_pylist()])
    side = pixels.shape[1] // 8
    small = pixels.reshape(-1, 8, side, 8, side).mean(axis=(2, 4)).reshape(len(pixels), 64) / 16
    return pd.DataFrame({"id": tables["images"]["id"].to_numpy(), "label": trained().predict(small)})


def _views(tables: Tables) -> pd.DataFrame:
    events = pd.DataFrame([json.loads(text) for text in tables["events"]["event"].to_pylist()])
    views = events[events["event_type"] == "view"]
    began = views["event_time"] // 10_000_000 * 10_000_000
    campaign = views["ad_id"].str.slice(3).astype("int64") % 100
    return pd.DataFrame({"campaign": campaign, "began": began}).value_counts().reset_index(name="views")


BACKLOG = {"patience_s": 300.0}
"""All input is there at once: a batch may cover any part of it."""

WINNERS = """
    SELECT a.id AS auction, seller, category, expires, bidder, price
    FROM auctions a JOIN bids b ON b.auction = a.id AND b."at" BETWEEN a."at" AND a.expires
    QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY price DESC, b."at", bidder) = 1
"""

ANSWERS: list[ReferenceAnswer] = [
    ReferenceAnswer("q1", sql('SELECT auction, bidder, price * 0.908::DOUBLE AS price, "at" FROM bids'), flush=nothing),
    ReferenceAnswer("q2", sql("SELECT auction, price FROM bids WHERE auction % 123 = 0"), flush=nothing),
    ReferenceAnswer(
        "q3",
        sql("""
            SELECT name, city, state, a.id AS auction FROM auctions a JOIN persons p ON a.seller = p.id
            WHERE category = 10 AND state IN ('OR', 'ID', 'CA') AND abs(epoch_us(a."at") - epoch_us(p."at")) <= 15000000
        """),
        settings={"lifetime_s": 15.0},
    ),
    ReferenceAnswer(
        "q4",
        sql(f"SELECT category, avg(price) AS price, count(*) AS auctions FROM ({WINNERS}) GROUP BY category"),
        final=last_update("category", by="auctions"),
        flush=later_auction_with_bid,
        settings=BACKLOG,
    ),
    ReferenceAnswer(
        "q5",
        sql("""
            WITH counted AS (
                SELECT epoch_us("at") // 5000000 * 5000000 + 5000000 * step AS until, auction, count(*) AS bids
                FROM bids, range(1, 5) AS steps(step) GROUP BY ALL
            )
            SELECT until AS "at", auction, bids FROM counted
            QUALIFY row_number() OVER (PARTITION BY until ORDER BY bids DESC, auction) = 1
        """),
        settings={"window_s": 20.0, "slide_s": 5.0},
    ),
    ReferenceAnswer(
        "q6",
        sql(f"""
            SELECT seller, avg(price) AS price, count(*) AS auctions FROM (
                SELECT * FROM ({WINNERS})
                QUALIFY row_number() OVER (PARTITION BY seller ORDER BY expires DESC, auction DESC) <= 10
            ) GROUP BY seller
        """),
        final=lambda frame: frame.groupby("seller", as_index=False).last(),
        flush=later_auction_with_bid,
        settings=BACKLOG,
    ),
    ReferenceAnswer(
        "q7",
        sql("""
            SELECT until AS "at", price, bidder, auction
            FROM (SELECT *, epoch_us("at") // 10000000 * 10000000 + 10000000 AS until FROM bids)
            QUALIFY row_number() OVER (PARTITION BY until ORDER BY price DESC, bidder, auction) = 1
        """),
    ),
    ReferenceAnswer(
        "q8",
        sql("""
            SELECT p.id AS person, name, a.id AS auction, reserve, epoch_us(p."at") // 10000000 * 10000000 AS "at"
            FROM auctions a JOIN persons p ON a.seller = p.id
            AND epoch_us(a."at") // 10000000 = epoch_us(p."at") // 10000000
        """),
    ),
    ReferenceAnswer("q9", sql(WINNERS), flush=later_auction_with_bid, settings=BACKLOG),
    ReferenceAnswer(
        "q11",
        sql("""
            WITH marked AS (
                SELECT bidder, epoch_us("at") AS us,
                    us - lag(us, 1, us) OVER (PARTITION BY bidder ORDER BY us) >= 2000000 AS fresh FROM bids
            ), numbered AS (
                SELECT *, sum(fresh::INT) OVER (PARTITION BY bidder ORDER BY us) AS session FROM marked
            )
            SELECT bidder, count(*) AS bids, min(us) AS began, max(us) + 2000000 AS ended
            FROM numbered GROUP BY bidder, session
        """),
        settings={"gap_s": 2.0},
    ),
    ReferenceAnswer(
        "q12",
        sql("SELECT bidder, count(*)::BIGINT AS bids FROM bids GROUP BY bidder"),
        settings={"window_s": 1.0},
        final=lambda frame: frame[frame["bidder"] != NOBODY].groupby("bidder", as_index=False)["bids"].sum(),
        flush=later_bid_of_nobody,
    ),
    ReferenceAnswer(
        "wordcount",
        sql("""
            WITH words AS (SELECT unnest(string_split(line, ' ')) AS word FROM lines)
            SELECT word, count(*) AS count FROM words GROUP BY word
        """),
        final=last_update("word", by="count"),
        flush=nothing,
    ),
    ReferenceAnswer("yahoo", _views, flush=later_view),
    ReferenceAnswer("inference", _classified, settings={"side": 16}, flush=nothing),
]
