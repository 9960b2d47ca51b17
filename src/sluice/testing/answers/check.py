"""Runs a standard query on its input while its operators are rescaled, and compares what came out with the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sluice.control.engine import wait
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.job import SparkJob
from sluice.spark.topic.interface import TopicStore
from sluice.testing.answers.reference import ReferenceAnswer, Tables, comparable, inputs, whole
from sluice.testing.exactly_once.rescaling import QUICK, drained, read_output, same_rows, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Output = Callable[[SparkEngine], pd.DataFrame]
BRINGER = "test"
MOST_PARALLELISM = 4
FLUSH_PATIENCE_S = 120.0
REST_S = 1.5


@dataclass(frozen=True)
class QueryCheck:
    """A query that answered right, and what it took."""

    events: int
    results: int
    rescales: int
    elapsed_s: float


def check_query(
    answer: ReferenceAnswer,
    spark: SparkSession | None,
    root: Path,
    *,
    events: int,
    rescales: int,
    seed: int,
    store: TopicStore | None = None,
    output: Output | None = None,
    pause_s: float = 0.0,
    block_count: int = 60,
    share: float = 1.0,
    on_rescale: Callable[[Mapping[str, int]], None] = lambda _target: None,
) -> QueryCheck:
    """Every `blocks / rescales` blocks all operators get another parallelism while records flow.

    A folder that holds a check which was killed goes on with it: blocks that are there are not brought again, and the
    rescales before them are not done again. With a share below 1 it stops bringing blocks there, and is to be killed.
    `output` reads the sink where it is not an embedded topic.
    """
    output = output or (lambda _: read_output(root, "out"))
    is_resumed = (root / "plan.json").exists()
    began_s = time.monotonic()
    random = np.random.default_rng(seed)
    job = answer.job()
    _use_few_state_partitions(job)
    blocks = inputs(job, events, blocks=block_count)
    tables = whole(blocks)
    expected = comparable(answer.answer(tables))
    engine = SparkEngine(job.pipeline, root, slots=32, spark=spark, settings=QUICK, store=store)
    names = engine.graph.names
    engine.start(Target(parallelism=dict.fromkeys(names, 2)))
    try:
        for number, block in enumerate(blocks[: round(len(blocks) * share)]):
            if not _is_new(engine, block, number):
                continue
            if number % (len(blocks) // rescales) == len(blocks) // rescales - 1:
                wait_until(lambda: _read_some(engine), engine, "batch before a rescale")
                target = {name: int(random.integers(1, MOST_PARALLELISM + 1)) for name in names}
                rescaled = engine.runtime.rescale(target, "live")
                assert not any(result.error for result in rescaled.values()), rescaled
                on_rescale(target)
            append_block(engine, block, number)
            time.sleep(pause_s)
        if share < 1.0:
            wait_until(lambda: False, engine, "death")
        flushed = _bring_to_an_end(answer, engine, job, tables, lambda: _is(_result(answer, output(engine)), expected))
    finally:
        count = engine.stop()
    same_rows(_result(answer, output(engine)), expected)
    assert (count.lost, count.duplicated, count.waiting) == (0, 0, 0)
    if not is_resumed:
        assert count.processed == sum(table.num_rows for table in tables.values()) + flushed
    return QueryCheck(count.processed, len(expected), rescales, time.monotonic() - began_s)


def finish_query(answer: ReferenceAnswer, job: SparkJob, engine: SparkEngine, root: Path, blocks: list[Tables]) -> int:
    """Bring what is left of the blocks to a started engine, end it and compare; how many rows were right."""
    tables = whole(blocks)
    expected = comparable(answer.answer(tables))
    try:
        for number, block in enumerate(blocks):
            append_block(engine, block, number)
        _bring_to_an_end(answer, engine, job, tables, lambda: _is(_result(answer, read_output(root, "out")), expected))
    finally:
        count = engine.stop()
    same_rows(_result(answer, read_output(root, "out")), expected)
    assert (count.lost, count.duplicated, count.waiting) == (0, 0, 0)
    return len(expected)


def _bring_to_an_end(
    answer: ReferenceAnswer, engine: SparkEngine, job: SparkJob, tables: Tables, complete: Callable[[], bool]
) -> int:
    """Let everything be read and all windows end; how many records that took."""
    wait_until(lambda: drained(engine), engine, "drained pipeline")
    flush = answer.flush(job, tables)
    return _flush_until_complete(engine, flush, complete) * len(flush)


def _use_few_state_partitions(job: SparkJob) -> None:
    """As many as any operator gets slots: each costs a state store per batch."""
    for name, spec in job.pipeline.operators.items():
        job.pipeline.operators[name] = replace(spec, state_partitions=MOST_PARALLELISM)


def _flush_until_complete(engine: SparkEngine, flush: Tables, complete: Callable[[], bool]) -> int:
    """How often it took: once, but for windows of the engine's own time and for watermarks that move batch by batch."""
    deadline_s = time.monotonic() + FLUSH_PATIENCE_S
    flushes = 0
    while time.monotonic() < deadline_s:
        flushes += 1
        _append(engine, flush, "flush", flushes)
        if _is_complete_at_rest(engine, complete):
            break
    return flushes


def _is_complete_at_rest(engine: SparkEngine, complete: Callable[[], bool]) -> bool:
    """Whether the output is complete by the time no operator has had a batch for a while."""
    active_s = time.monotonic()
    while time.monotonic() < active_s + REST_S:
        wait(engine, 0.2)
        if drained(engine) and complete():
            return True
        if not drained(engine) or any(query.in_batch for query in engine.runtime.queries.values()):
            active_s = time.monotonic()
    return False


def _is(found: pd.DataFrame, expected: pd.DataFrame) -> bool:
    try:
        same_rows(found, expected)
    except AssertionError:
        return False
    return True


def append_block(engine: SparkEngine, block: Tables, number: int) -> None:
    """What an earlier driver brought is there already and stays as it is."""
    _append(engine, block, BRINGER, number)


def _is_new(engine: SparkEngine, block: Tables, number: int) -> bool:
    """Whether anything of it is missing; an empty table leaves no trace."""
    brought = (engine.runtime.topics[name].last_batch_id(BRINGER) for name, table in block.items() if table.num_rows)
    return any(last is None or last < number for last in brought)


def _append(engine: SparkEngine, tables: Tables, producer: str, batch_id: int) -> None:
    topics = engine.runtime.topics
    for source, table in tables.items():
        topics[source].append(table.cast(topics[source].schema), producer=producer, batch_id=batch_id)


def _read_some(engine: SparkEngine) -> bool:
    """Whether the sources have caught up but for a few blocks, so that a rescale falls into the middle of the work."""
    return all(
        engine.runtime.topics[topic].lag_records(query.name) < 50_000
        for query in engine.runtime.queries.values()
        for topic in query.query.inputs
    )


def _result(answer: ReferenceAnswer, found: pd.DataFrame) -> pd.DataFrame:
    return answer.final(comparable(found))
