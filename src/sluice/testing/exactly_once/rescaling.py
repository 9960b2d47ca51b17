"""Runs a job while its records arrive and its operators are rescaled, and reads what came out."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.folders import last_batches
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.pipeline.runtime import Rescale
from sluice.spark.topic import Topic
from sluice.testing.exactly_once.jobs import FLUSH_KEY, ReferenceJob, flush, to_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = QuerySettings(trigger_s=0.2)
PATIENCE_S = 300.0
LOOK_S = 0.05
LOOKS_PER_TICK = 10


def wait_until(condition: Callable[[], bool], engine: SparkEngine, what: str) -> None:
    """Ticks are rarer than looks at the condition: each asks Spark about every query."""
    deadline_s = time.monotonic() + PATIENCE_S
    for look in itertools.count():
        if condition():
            return
        if look % LOOKS_PER_TICK == 0:
            engine.maintain()
        assert time.monotonic() < deadline_s, f"no {what} within {PATIENCE_S:g} s"
        time.sleep(LOOK_S)


class FrameFeed:
    """Appends every source's records in small pieces, in the background, until all (or a share of them) are in."""

    def __init__(
        self,
        engine: SparkEngine,
        frames: Mapping[str, pd.DataFrame],
        *,
        pieces: int,
        pause_s: float,
        share: float = 1.0,
    ) -> None:
        self._engine = engine
        self._due = round(pieces * share)
        self._frames = frames
        self._pieces = pieces
        self._pause_s = pause_s
        self._thread = threading.Thread(target=self._feed)

    def __enter__(self) -> FrameFeed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _feed(self) -> None:
        for piece in range(self._due):
            appended = [self._append(source, frame, piece) for source, frame in self._frames.items()]
            # what an earlier life has brought is there already
            if any(appended):
                time.sleep(self._pause_s)

    def _append(self, source: str, frame: pd.DataFrame, piece: int) -> bool:
        topic = self._engine.runtime.topics[source]
        low, high = (len(frame) * part // self._pieces for part in (piece, piece + 1))
        table = to_table(frame.iloc[low:high], topic.schema)
        return topic.append(table, producer="test", batch_id=piece) is not None


def drained(engine: SparkEngine) -> bool:
    return all(
        engine.runtime.topics[topic].lag_records(query.name) == 0
        for query in engine.runtime.queries.values()
        for topic in query.query.inputs
    )


def read_output(root: Path, sink: str) -> pd.DataFrame:
    topic = Topic.open(root / "topics" / sink)
    batches = list(topic.read(topic.start_offset(), topic.end_offset()))
    found = pa.Table.from_batches(batches, topic.schema).to_pandas()
    return found[found["key"] != FLUSH_KEY] if "key" in found else found


def same_rows(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Equal as multisets: nothing lost, nothing twice, nothing else."""
    columns = list(expected.columns)
    left, right = (frame[columns].sort_values(columns).reset_index(drop=True) for frame in (found, expected))
    pd.testing.assert_frame_equal(left, right, check_dtype=False)


def run_with_rescales(
    job: ReferenceJob,
    spark: SparkSession | None,
    root: Path,
    *,
    records: int,
    rescales: int,
    how: Callable[[int], Rescale],
    seed: int,
    pause_s: float = 0.05,
    pieces: int | None = None,
    share: float = 1.0,
) -> SparkEngine:
    """Feed, rescale at random, drain, stop; the output must be what pandas computes.

    With a share below 1 of the records it goes on rescaling until someone kills it.
    """
    random = np.random.default_rng(seed)
    frames = job.inputs(records)
    engine = SparkEngine(job.build(), root, slots=24, spark=spark, settings=QUICK)
    names = engine.graph.names
    engine.start(Target(parallelism=dict.fromkeys(names, 2)))
    try:
        with FrameFeed(engine, frames, pieces=pieces or 20 + 10 * rescales, pause_s=pause_s, share=share):
            for number in range(rescales) if share == 1.0 else itertools.count():
                target = {name: int(random.integers(1, 7)) for name in names}
                rescaled = engine.runtime.rescale(target, how(number))
                assert not any(result.error for result in rescaled.values()), rescaled
                assert engine.runtime.parallelism == target
                _one_more_batch(engine)
        if job.needs_flush:
            _flush(engine, frames)
        wait_until(lambda: drained(engine), engine, "drained pipeline")
        expected = job.expected(frames)
        wait_until(lambda: len(job.final(read_output(root, "out"))) >= len(expected), engine, "complete output")
    finally:
        count = engine.stop()
    same_rows(job.final(read_output(root, "out")), expected)
    assert (count.lost, count.duplicated, count.waiting) == (0, 0, 0)
    assert count.processed == count.arrived
    return engine


def _one_more_batch(engine: SparkEngine) -> None:
    before = _committed_batches(engine)
    wait_until(
        lambda: drained(engine) or any(batch > before[name] for name, batch in _committed_batches(engine).items()),
        engine,
        "batch after a rescale",
    )


def _committed_batches(engine: SparkEngine) -> dict[str, int]:
    """The number of the last one of every operator, from its checkpoint."""
    return {name: last_batches(engine.runtime.folders.checkpoint(name))[1] for name in engine.graph.names}


def _flush(engine: SparkEngine, frames: Mapping[str, pd.DataFrame]) -> None:
    for step in range(2):
        wait_until(lambda: drained(engine), engine, "drained pipeline")
        for source, frame in frames.items():
            topic = engine.runtime.topics[source]
            topic.append(to_table(flush(frame, step), topic.schema), producer="flush", batch_id=step)
