"""What the benchmarks of nodes with sizes share: operators, sizes, a master without workers, an engine on nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring import SteadyFeed
from sluice.model import NodeType
from sluice.spark.cluster import lifecycle, standalone
from sluice.spark.nodes.engine import SizedEngine
from sluice.spark.nodes.pool import NodePool
from sluice.spark.nodes.provider import NodeProvider
from sluice.spark.pipeline.definition import Pipeline
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.pipeline.query import QuerySettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MEMORY_MB = 600
TYPES = (
    NodeType(name="small", cpu_cores=0.25, memory_mb=MEMORY_MB, price_per_hour=0.03, slots=1, start_s=30),
    NodeType(name="medium", cpu_cores=0.5, memory_mb=MEMORY_MB, price_per_hour=0.05, slots=1, start_s=25),
    NodeType(name="large", cpu_cores=0.9, memory_mb=MEMORY_MB, price_per_hour=0.09, slots=2, start_s=20),
)
"""Cores and quotas differ; small and medium have one slot with a quarter and half a core."""
KEYS = 1_000
SOURCE = "numbers"


def numbers(first: int, count: int) -> pa.Table:
    return pa.table({"id": np.arange(first, first + count)})


def digest(records: DataFrame) -> DataFrame:
    """Bound by the CPU, without state."""
    text = "cast(id as string)"
    for _ in range(12):
        text = f"sha2({text}, 512)"
    return records.selectExpr("id", f"{text} AS digest")


def per_key(records: DataFrame) -> DataFrame:
    """Keeps state: how often each of a thousand keys came."""
    return records.groupBy((records.id % KEYS).alias("key")).count()


def parse(records: DataFrame) -> DataFrame:
    """Allocates: text is built and taken apart again."""
    text = "concat_ws(',', transform(sequence(1, 40), n -> cast(id * n as string)))"
    return records.selectExpr("id", f"aggregate(split({text}, ','), 0L, (a, b) -> a + cast(b as bigint)) AS total")


OPERATORS: dict[str, tuple[Callable[[DataFrame], DataFrame], dict[str, Any]]] = {
    "digest": (digest, {}),
    "per_key": (per_key, {"output_mode": "update", "state_partitions": 4}),
    "parse": (parse, {}),
}


def pipeline_of(*names: str) -> Pipeline:
    """One operator behind the other."""
    job = Pipeline("-".join(names))
    dataset = job.source(SOURCE, "id BIGINT")
    for name in names:
        function, options = OPERATORS[name]
        dataset = job.operator(name, function, dataset, **options)
    job.sink("out", dataset)
    return job


@contextmanager
def master(home: Path) -> Iterator[str]:
    """A standalone master that has no workers: the nodes are all it gets."""
    state = standalone.up(home, workers=0, slots=1)
    try:
        yield state.master_url
    finally:
        lifecycle.down(home)


def open_engine(
    job: Pipeline, root: Path, master_url: str, provider: NodeProvider, *, rate: float, default_type: str = "small"
) -> SizedEngine:
    pool = NodePool(provider)
    try:
        pool.begin({default_type: len(job.operators)})
        inner = SparkEngine(
            job,
            root,
            master=master_url,
            places=True,
            grows=True,
            session_settings={"spark.executor.memory": f"{MEMORY_MB}m"},
            settings=QuerySettings(trigger_s=1.0, keep_output=True),
            feed=SteadyFeed(SOURCE, rate, numbers),
        )
        return SizedEngine(inner, pool, default_type=default_type, root=root)
    except BaseException:
        pool.close()
        raise
