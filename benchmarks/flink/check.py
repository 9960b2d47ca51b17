"""Whether both engines give the same answers: python -m benchmarks.flink.check [--share 0.05]

Flink ends its last windows when its input ends; a pipeline on Spark waits for later records. So all of ours must be
among Flink's, and what is missing belongs to the windows that were open at the end.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.flink.__main__ import FLINK_SETTINGS, SLOTS, smaller
from benchmarks.flink.cluster import CACHE, FlinkCluster
from benchmarks.flink.data import Data
from benchmarks.flink.queries import COMPARISONS, Comparison
from benchmarks.measuring import end_on_sigterm
from sluice.control.engine import wait
from sluice.model import Target
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.session import open_session
from sluice.spark.topic import Topic

CHECKED = ("q5", "q8")
"""A running count changes its output and cannot be written to files; q1 has too many results to compare them all."""
REST_S = 3.0

Rows = Counter[tuple[float, ...]]


def rows_of(frame: pd.DataFrame) -> Rows:
    """Numbers only: engines write times and names differently."""
    numbers = frame.select_dtypes("number").round(3)
    return Counter(numbers.itertuples(index=False, name=None))


def on_flink(cluster: FlinkCluster, comparison: Comparison, data: Mapping[str, Data], folder: Path) -> Rows:
    into = f"'connector' = 'filesystem', 'path' = '{folder.as_uri()}', 'format' = 'csv'"
    statements = comparison.flink_statements({name: one.files for name, one in data.items()}, into)
    cluster.await_end(cluster.submit(statements, comparison.flink_settings))
    written = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    return rows_of(pd.concat([pd.read_csv(path, header=None) for path in written]))


def on_spark(spark: SparkSession, comparison: Comparison, data: Mapping[str, Data], root: Path) -> Rows:
    for one in data.values():
        one.forget_readers()
    pipeline = comparison.pipeline({name: one.topic for name, one in data.items()}, None)
    engine = SparkEngine(pipeline, root, slots=SLOTS, spark=spark)
    engine.start(Target(parallelism={comparison.name: SLOTS}))
    out = engine.runtime.topics["results"]
    assert isinstance(out, Topic)
    # a batch without records moves the watermark on
    while any(engine.runtime.topics[name].lag_records(comparison.name) for name in data):
        wait(engine, 0.5)
    wait(engine, REST_S)
    engine.stop()
    return rows_of(pa.Table.from_batches(_all(out), schema=out.schema).to_pandas())


def _all(topic: Topic) -> Iterator[pa.RecordBatch]:
    yield from topic.read(topic.start_offset(), topic.end_offset())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=0.05, help="of the records")
    share = parser.parse_args().share
    end_on_sigterm()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        open_session("flink", threads=SLOTS) as spark,
    ):
        root = Path(folder)
        cluster = FlinkCluster(root / "flink", slots=SLOTS, settings=FLINK_SETTINGS)
        try:
            for name in CHECKED:
                comparison = smaller(COMPARISONS[name], share)
                data = {stream.name: Data(CACHE / "data", stream) for stream in comparison.streams}
                for one in data.values():
                    one.make()
                theirs = on_flink(cluster, comparison, data, root / f"flink-{name}")
                ours = on_spark(spark, comparison, data, root / f"run-{name}")
                print(
                    f"{name}: {ours.total():,} rows of ours, {theirs.total():,} of Flink's, "
                    f"{(ours - theirs).total():,} of ours are not among Flink's",
                    flush=True,
                )
        finally:
            cluster.end()


if __name__ == "__main__":
    main()
