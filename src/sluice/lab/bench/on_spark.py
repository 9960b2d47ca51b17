"""The same cells as a Spark job: a laptop's `local[*]` or a cluster, where sluice must be installed on the executors.

Cells travel as text and come back as text, so executors need no shared folder; the driver writes what arrives, one
batch of bundles after the other, and a bench can be resumed from there.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluice.lab.bench.cell import Result
from sluice.lab.bench.grid import Cell
from sluice.lab.bench.local import Task, bundle, run_bundle
from sluice.lab.bench.statistics import GROUP, GroupScore, score_group

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

BUNDLES_PER_CORE = 8
"""Per batch: enough to even out long and short runs, few enough that a crash loses little."""


@contextmanager
def spark_session(master: str) -> Iterator[SparkSession]:
    """The session that is there already, left as it is; else one of our own, stopped afterwards."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("sluice bench")
    spark: SparkSession = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def run_on_spark(tasks: Sequence[Task], master: str) -> Iterator[Result]:
    with spark_session(master) as spark:
        cores = spark.sparkContext.defaultParallelism
        for batch in _batched(bundle(tasks, cores), BUNDLES_PER_CORE * cores):
            rows = [(json.dumps([(cell.to_json(), series) for cell, series in found]),) for found in batch]
            frame = spark.createDataFrame(rows, "bundle string").repartition(len(rows))
            for row in frame.mapInArrow(_run_bundles, "result string").collect():
                yield Result.model_validate_json(row["result"])


def _batched(bundles: Iterable[list[Task]], size: int) -> Iterator[list[list[Task]]]:
    bundles = iter(bundles)
    while batch := list(itertools.islice(bundles, size)):
        yield batch


def _run_bundles(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    for batch in batches:
        for text in batch.column("bundle").to_pylist():
            tasks = [(Cell.model_validate_json(cell), bool(series)) for cell, series in json.loads(text)]
            results = [result.to_json() for result in run_bundle(tasks, None)]
            yield pyarrow.RecordBatch.from_pydict({"result": results})


def score_groups_on_spark(results: Sequence[Result], master: str) -> list[GroupScore]:
    """What `statistics.score_groups` computes, one group per task, by the same function."""
    import pyarrow

    rows = [result.row for result in results]
    with spark_session(master) as spark:
        frame = spark.createDataFrame(pyarrow.Table.from_pylist(rows))
        scored = frame.groupBy(*GROUP).applyInArrow(_score_group, "score string").collect()
    groups = [GroupScore.model_validate_json(row["score"]) for row in scored]
    order = {tuple(row[name] for name in GROUP): number for number, row in reversed(list(enumerate(rows)))}
    return sorted(groups, key=lambda group: order[tuple(getattr(group, name) for name in GROUP)])


def _score_group(table: Any) -> Any:
    import pyarrow

    return pyarrow.table({"score": [score_group(table.to_pylist()).to_json()]})
