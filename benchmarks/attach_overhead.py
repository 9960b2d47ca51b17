"""What attaching costs of a query's throughput, in one run: CPU time spent for it over all CPU time, by thread.

python -m benchmarks.attach_overhead [--short]

A stateful count over generated records on a standalone cluster of this machine, as fast as it goes, with two executors
throughout; attached with the default settings, which change nothing here. The machine is busy with nothing else, so the
share of its CPU time is the share of throughput. Counted are all threads of the driver's Python but the main one, the
JVM's thread that answers the loop, and the one that hands progress events out (which it would do for others too).

Beside it, in turns with and without: records/s, and CPU time of the machine per record. Two stretches of the same kind
differ by more than what is to be shown, so these only tell that nothing large was missed.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sluice
from benchmarks.measuring import JvmThreads, machine_cpu_s
from sluice.spark.attach.engine import AttachedEngine
from sluice.testing.step_load.job import DRAINING, local_cluster, session

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


def meter_listener(threads: JvmThreads) -> None:
    on_progress = AttachedEngine._on_progress

    def noted(engine: AttachedEngine, progress: dict[str, Any]) -> None:
        threads.note("JVM, listener")
        on_progress(engine, progress)

    setattr(AttachedEngine, "_on_progress", noted)  # noqa: B010 - a method


def batches_done(query: StreamingQuery) -> int:
    last = query.lastProgress
    return -1 if last is None else int(last.batchId)


def wait_for_batches(query: StreamingQuery, more: int) -> None:
    target = batches_done(query) + more
    while batches_done(query) < target:
        assert query.isActive, query.exception()
        time.sleep(0.05)


@dataclass(frozen=True)
class Spent:
    """Records, time and CPU seconds of a stretch, or since some beginning."""

    records: int
    length_s: float
    machine_s: float
    parts_s: Mapping[str, float]

    def since(self, first: Spent) -> Spent:
        return Spent(
            self.records - first.records,
            self.length_s - first.length_s,
            self.machine_s - first.machine_s,
            {name: part_s - first.parts_s[name] for name, part_s in self.parts_s.items() if name in first.parts_s},
        )


def spent(query: StreamingQuery, threads: JvmThreads) -> Spent:
    parts_s = {"Python": time.process_time() - time.thread_time(), **threads.cpu_s()}
    return Spent(batches_done(query) * ROWS_PER_BATCH, time.monotonic(), machine_cpu_s(), parts_s)


def measure(query: StreamingQuery, threads: JvmThreads, batches: int) -> Spent:
    first = spent(query, threads)
    wait_for_batches(query, batches)
    return spent(query, threads).since(first)


def measure_attached(spark: SparkSession, query: StreamingQuery, threads: JvmThreads, batches: int) -> Spent:
    """From the first cycle on: what `attach` does once is not what it costs."""
    with sluice.attach(spark, "ds2", min_executors=EXECUTORS, max_executors=EXECUTORS) as attachment:
        attachment.on_report(lambda _report: threads.note("JVM, loop"))
        while "JVM, loop" not in threads.cpu_s():
            wait_for_batches(query, 1)
        found = measure(query, threads, batches)
    threads.forget("JVM, loop")
    assert attachment.failure is None, attachment.failure
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="two turns instead of eight")
    short = parser.parse_args().short
    turns, batches = (2, 20) if short else (8, 60)
    plain: list[Spent] = []
    attached: list[Spent] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "cluster"
        with local_cluster(home, workers=1, slots=EXECUTORS) as cluster:
            spark = session(cluster.master_url, **{**DRAINING, "spark.cores.max": str(EXECUTORS)})
            query = start_query(spark, Path(folder))
            wait_for_batches(query, 2 * batches)
            threads = JvmThreads(spark)
            meter_listener(threads)
            # the order changes with every turn, so that a drift of the machine hits both alike
            orders = itertools.cycle([(False, True), (True, False)])
            for turn, order in zip(range(turns), orders, strict=False):
                for with_attach in order:
                    if with_attach:
                        attached.append(measure_attached(spark, query, threads, batches))
                    else:
                        plain.append(measure(query, threads, batches))
                    found = (attached if with_attach else plain)[-1]
                    name = "with" if with_attach else "without"
                    print(f"turn {turn} {name:7} {found.records / found.length_s:12,.0f} records/s", flush=True)
            query.stop()
            spark.stop()
    report(plain, attached)


def report(plain: list[Spent], attached: list[Spent]) -> None:
    machine_s = sum(stretch.machine_s for stretch in attached)
    length_s = sum(stretch.length_s for stretch in attached)
    parts = {name: sum(stretch.parts_s[name] for stretch in attached) for name in attached[0].parts_s}
    for name, part_s in parts.items():
        print(f"{name:14} {part_s / length_s * 1000:6.2f} ms CPU per second")
    print(f"{'everything':14} {machine_s / length_s * 1000:6.0f} ms CPU per second")
    print(f"attaching over everything: {sum(parts.values()) / machine_s:.2%} (aim: below 1 %)")
    compare(
        "records/s", [(w.records / w.length_s) / (o.records / o.length_s) for w, o in zip(attached, plain, strict=True)]
    )
    compare(
        "CPU per record",
        [(w.machine_s / w.records) / (o.machine_s / o.records) for w, o in zip(attached, plain, strict=True)],
    )


def compare(what: str, ratios: list[float]) -> None:
    low, *_, high = sorted(ratios)
    print(f"{what} with over without: median {statistics.median(ratios):.3f}, {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
