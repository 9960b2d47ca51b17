"""Records/s of a q1-like job over a broker, against embedded topics and against a hand-written PySpark job.

python -m benchmarks.kafka_throughput [--short]

All run the same three operators chained, in one session with two task threads: `embedded` between two embedded topics,
`broker` between two topics of a broker exactly once, `native` as one would write it with Spark's own Kafka source and
sink, at least once. Rates are taken over the last two thirds of the records, in rounds that alternate. The broker runs
on the same cores; CPU seconds per million records are those of the driver's session, without the broker.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measuring import Speed, speed_of
from benchmarks.spark_throughput import (
    CORES,
    KEEPER,
    RECORDS_PER_FILE,
    SCHEMA,
    bids,
    euros,
    keep,
    parse,
    pipeline,
    run_sluice,
)
from sluice.model import Target
from sluice.spark.kafka.connection import Broker
from sluice.spark.kafka.connector import session_settings
from sluice.spark.kafka.log import KafkaTopic
from sluice.spark.kafka.rows import decoded, encoded
from sluice.spark.kafka.store import KafkaTopics
from sluice.spark.pipeline.engine import SparkEngine
from sluice.spark.session import open_session
from sluice.spark.topic import Topic
from sluice.spark.topic.sink import arrow_schema
from sluice.testing.kafka import local_broker, make_topic

PARTITIONS = 4
RECORDS_PER_BATCH = 200_000
EMBEDDED_TIMES = 5
"""So many more records for embedded topics, which are read in a few batches otherwise."""
SOURCE = "throughput.bids"


def run_broker(spark: SparkSession, bootstrap: str, root: Path, total: int) -> Speed:
    """Offsets of the output also count transactions, so what is done is known by what was read."""
    made = pipeline(Path(SOURCE), chain=True)
    prefix = f"throughput-{uuid.uuid4().hex[:8]}"
    store = KafkaTopics(Broker(bootstrap=bootstrap, prefix=prefix), made.named_topics())
    engine = SparkEngine(made, root, slots=CORES * 3, spark=spark, store=store)
    engine.start(Target(parallelism=dict.fromkeys(engine.graph.names, CORES)))
    (ledger,) = engine.ledgers.of.values()
    ticked_s = [time.monotonic()]

    def done_records() -> int:
        if time.monotonic() - ticked_s[0] > engine.tick_s:
            engine.maintain()
            ticked_s[0] = time.monotonic()
        return ledger.read_records

    speed = speed_of(done_records, total)
    count = engine.stop()
    assert (count.lost, count.duplicated, count.processed) == (0, 0, total), count
    return speed


def run_native(spark: SparkSession, bootstrap: str, root: Path, total: int) -> Speed:
    target = f"native-{uuid.uuid4().hex[:8]}"
    make_topic(bootstrap, target, PARTITIONS)
    frame: DataFrame = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", SOURCE)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", RECORDS_PER_BATCH)
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    schema = spark.createDataFrame([], SCHEMA).schema
    query = (
        encoded(keep(euros(parse(decoded(frame.select("value"), schema)))))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(root / "checkpoint"))
        .start()
    )
    done: dict[int, int] = {}

    def done_records() -> int:
        for progress in query.recentProgress:
            done[progress.batchId] = progress.numInputRows
        return sum(done.values())

    speed = speed_of(done_records, total)
    query.stop()
    return speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="one round, not two")
    short = parser.parse_args().short
    # fewer records would be two or three batches
    total, rounds = 4_000_000, 1 if short else 2
    spark = open_session("throughput", threads=CORES, settings=session_settings()).spark
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        with local_broker(root / "broker") as bootstrap:
            schema = arrow_schema(spark.createDataFrame([], SCHEMA).schema)
            embedded = Topic.create(root / "bids", schema)
            embedded.register(KEEPER)
            for name, partitions in ((SOURCE, PARTITIONS), ("throughput.commits", 1), ("throughput.batches", 1)):
                make_topic(bootstrap, name, partitions)
            on_broker = KafkaTopic(Broker(bootstrap=bootstrap, prefix="throughput"), SOURCE)
            for topic, records in ((embedded, total * EMBEDDED_TIMES), (on_broker, total)):
                for number in range(records // RECORDS_PER_FILE):
                    topic.append(bids(number * RECORDS_PER_FILE, schema), producer="bench", batch_id=number)
            runs: dict[str, Callable[[Path], Speed]] = {
                "embedded": lambda where: run_sluice(spark, embedded.path, where, total * EMBEDDED_TIMES, chain=True),
                "broker": lambda where: run_broker(spark, bootstrap, where, total),
                "native": lambda where: run_native(spark, bootstrap, where, total),
            }
            speeds: dict[str, list[Speed]] = {name: [] for name in runs}
            for number in range(rounds + 1):
                for name, run in runs.items():
                    for consumer in embedded.consumers().keys() - {KEEPER}:
                        embedded.unregister(consumer)
                    speed = run(root / f"{name}-{number}")
                    print(f"round {number} {name:9} {speed.records_per_s:12,.0f} records/s", flush=True)
                    if number > 0:  # the first round compiles
                        speeds[name].append(speed)
            report(speeds)
    spark.stop()


def report(speeds: dict[str, list[Speed]]) -> None:
    rate = {name: statistics.median(speed.records_per_s for speed in found) for name, found in speeds.items()}
    cpu = {name: statistics.median(speed.cpu_s_per_million for speed in found) for name, found in speeds.items()}
    for name, value in rate.items():
        print(f"{name:9} {value:12,.0f} records/s, {cpu[name]:6.2f} CPU s per million records")
    print(f"broker over embedded: {rate['broker'] / rate['embedded']:.2f}")
    print(f"broker over native:   {rate['broker'] / rate['native']:.2f}")


if __name__ == "__main__":
    main()
