"""Records/s per core into a topic, for every stream, beside Spark's own rate source in the same run.

python -m benchmarks.generator [--short]

The generator makes bids with four random columns and commits them as checksummed Parquet, as it does while a pipeline
runs. Spark's rate source makes a counter and a timestamp; it is measured twice, into nothing and into a topic. All by
CPU time, so that what else runs on the machine matters little: records per second of one core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from sluice.lab.generator.ads import AdEvents
from sluice.lab.generator.images import Images
from sluice.lab.generator.nexmark import Auctions, Bids, Persons
from sluice.lab.generator.words import Lines
from sluice.processes import cpu_seconds
from sluice.spark.pipeline.specs import Generate
from sluice.spark.session import open_session
from sluice.spark.topic import Topic
from sluice.spark.topic.sink import TopicSink, arrow_schema

TARGET_BIDS_PER_CORE_S = 1_500_000
RECORDS_PER_BLOCK = 250_000
TIME_S = 1_800_000_000.0
STREAMS: dict[str, tuple[Generate, int]] = {
    "bids": (Bids(), RECORDS_PER_BLOCK),
    "bids, half of them hot": (Bids(hot_share=0.5), RECORDS_PER_BLOCK),
    "auctions": (Auctions(), RECORDS_PER_BLOCK),
    "persons": (Persons(), RECORDS_PER_BLOCK),
    "lines of five words": (Lines(), RECORDS_PER_BLOCK),
    "ad events as JSON": (AdEvents(), RECORDS_PER_BLOCK),
    "images of 64 by 64": (Images(), 5_000),
}


def into_topic(generate: Generate, block: int, folder: Path, cpu_limit_s: float) -> float:
    """Records per core-second; a consumer keeps up, so that old segments are deleted as in a run."""
    topic = Topic.create(folder, generate(0, 1, TIME_S, 0).schema)
    topic.register("reader")
    generate(0, block, TIME_S, 0)
    made, batch_id = 0, 0
    started_s = time.process_time()
    while time.process_time() - started_s < cpu_limit_s:
        topic.append(generate(made, block, TIME_S, 0), producer="benchmark", batch_id=batch_id)
        made += block
        batch_id += 1
        topic.acknowledge("reader", topic.end_offset())
    return made / (time.process_time() - started_s)


def spark_rate_source(folder: Path, records: int) -> tuple[float, float]:
    """Records per core-second of the rate source: into nothing, and into a topic. JVM and Python together."""
    spark = open_session("rate source", threads=2).spark
    try:
        stream = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", records)
            .option("numPartitions", 2)
            .load()
        )
        topic = Topic.create(folder / "topic", arrow_schema(stream.schema))
        sinks: dict[str, Callable[[DataFrame, int], None]] = {
            "nothing": lambda batch, _: batch.write.format("noop").mode("overwrite").save(),
            "topic": TopicSink(topic.path, producer="rate"),
        }
        speeds = []
        for name, sink in sinks.items():
            query = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(folder / name)).start()
            _after_batches(query, 2)
            before_s = cpu_seconds() or 0.0
            batches = _after_batches(query, 3)
            speeds.append(batches * records / ((cpu_seconds() or 0.0) - before_s))
            query.stop()
    finally:
        spark.stop()
    return speeds[0], speeds[1]


def _after_batches(query: StreamingQuery, count: int) -> int:
    def newest() -> int:
        progress = query.lastProgress
        return -1 if progress is None else int(progress["batchId"])

    first = newest()
    while newest() < first + count:
        time.sleep(0.05)
    return newest() - first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="less time for every stream")
    short = parser.parse_args().short
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        into_nothing, rate_into_topic = spark_rate_source(folder, 500_000 if short else 2_000_000)
        print(f"{'stream into a topic':<28}{'million records/s per core':>28}{'rate source = 1':>18}")
        for number, (stream, (generate, block)) in enumerate(STREAMS.items()):
            speed = into_topic(generate, block, folder / str(number), 1.0 if short else 4.0)
            print(f"{stream:<28}{speed / 1e6:>28.2f}{speed / rate_into_topic:>18.2f}")
            if stream == "bids":
                bids = speed
        for label, speed in (("rate source into a topic", rate_into_topic), ("rate source into nothing", into_nothing)):
            print(f"{label:<28}{speed / 1e6:>28.2f}{speed / rate_into_topic:>18.2f}")
    verdict = "reached" if bids >= TARGET_BIDS_PER_CORE_S else "missed"
    print(f"target of {TARGET_BIDS_PER_CORE_S / 1e6:g} million bids/s per core: {verdict}")


if __name__ == "__main__":
    main()
