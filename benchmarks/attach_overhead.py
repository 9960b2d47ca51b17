"""What attaching costs: records/s of one query with `attach` over without, in turns, in one run.

python -m benchmarks.attach_overhead [--short]

A stateful count over generated records on a standalone cluster of this machine, as fast as it goes, with two executors
throughout; attaching decides every second, ten times as often as it does by default, and changes nothing. Besides the
ratio of the medians: the CPU time of the driver's Python process, which does nothing but what attaching needs.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark import stepload

import sluice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

EXECUTORS = 2
ROWS_PER_BATCH = 400_000


def start_query(spark: SparkSession, root: Path) -> StreamingQuery:
    rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=ROWS_PER_BATCH, numPartitions=4).load()
    return (
        rows.selectExpr("value % 1000 AS key")
        .groupBy("key")
        .count()
        .writeStream.outputMode("update")
        .format("noop")
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )


def batches_done(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last.batchId)


def rate_of(query: StreamingQuery, batches: int) -> tuple[float, float]:
    """Records/s over so many batches, and CPU seconds of this process per second."""
    marks = []
    for wanted in (1, batches):
        target = batches_done(query) + wanted
        while batches_done(query) < target:
            assert query.isActive, query.exception()
            time.sleep(0.02)
        marks.append((batches_done(query), time.monotonic(), time.process_time()))
    (first, began_s, began_cpu_s), (last, ended_s, ended_cpu_s) = marks
    length_s = ended_s - began_s
    return (last - first) * ROWS_PER_BATCH / length_s, (ended_cpu_s - began_cpu_s) / length_s


@contextlib.contextmanager
def attached(spark: SparkSession) -> Iterator[None]:
    with sluice.attach(spark, "ds2", min_executors=EXECUTORS, max_executors=EXECUTORS, interval=1) as attachment:
        yield
    assert attachment.failure is None, attachment.failure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two turns instead of twelve")
    short = parser.parse_args().short
    turns, batches = (2, 10) if short else (12, 20)
    rates: dict[bool, list[float]] = {True: [], False: []}
    cpu: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "cluster"
        with stepload.cluster(home, workers=1, slots=EXECUTORS) as cluster:
            spark = stepload.session(cluster.master_url, **{**stepload.DRAINING, "spark.cores.max": str(EXECUTORS)})
            query = start_query(spark, Path(folder))
            rate_of(query, 3 * batches)
            # the order changes with every turn, so that a drift of the machine hits both alike
            orders = itertools.cycle([(False, True), (True, False)])
            for turn in range(turns):
                for with_attach in next(orders):
                    with attached(spark) if with_attach else contextlib.nullcontext():
                        rate, used = rate_of(query, batches)
                    rates[with_attach].append(rate)
                    cpu[with_attach].append(used)
                    print(f"turn {turn} {'with' if with_attach else 'without':7} {rate:12,.0f} records/s", flush=True)
            query.stop()
            spark.stop()
    report(rates, cpu)


def report(rates: dict[bool, list[float]], cpu: dict[bool, list[float]]) -> None:
    pairs = sorted(with_ / without for with_, without in zip(rates[True], rates[False], strict=True))
    ratio = statistics.median(rates[True]) / statistics.median(rates[False])
    print(f"records/s with attach over without: {ratio:.3f} (median of pairs {statistics.median(pairs):.3f}, ", end="")
    print(f"{pairs[0]:.3f} to {pairs[-1]:.3f} over {len(pairs)} pairs; aim: at least 0.99)")
    extra = statistics.median(cpu[True]) - statistics.median(cpu[False])
    print(f"Python CPU of the driver: {extra * 1000:.1f} ms more per second with attach, deciding every second")


if __name__ == "__main__":
    main()
