"""From one of sluice's own topics to another, exactly once: lag is known in records, so an objective is kept by it.

sluice cluster up --workers 2 --slots 4      # prints the master's address
python examples/topic.py spark://127.0.0.1:PORT FOLDER 120
"""

import itertools
import sys
import threading
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import sluice
from sluice.engines.spark.topic import ReaderControl, Topic
from sluice.engines.spark.topic.sink import TopicSink
from sluice.engines.spark.topic.source import stream_from

master, folder, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
spark = (
    SparkSession.builder.master(master)
    .appName("topic")
    .config("spark.executor.cores", "1")
    .config("spark.executor.memory", "512m")
    .config("spark.cores.max", "4")
    .config("spark.decommission.enabled", "true")
    .config("spark.storage.decommission.enabled", "true")
    .config("spark.pyspark.python", sys.executable)  # topics are read in Python, by one that has sluice
    .getOrCreate()
)
orders = Topic.create(folder / "orders", pa.schema([("id", pa.int64()), ("cents", pa.int64())]))
euros = Topic.create(folder / "euros", pa.schema([("id", pa.int64()), ("euros", pa.float64())]))
control = ReaderControl(partitions=8, slot_rate=200.0)  # eight tasks per batch, 200 records/s each: paced for the show
control.save(folder / "orders.control")


def write_orders(ended: threading.Event) -> None:
    """Stands for whoever writes the topic: 500 records per second."""
    for number in itertools.takewhile(lambda _: not ended.wait(1.0), itertools.count()):
        ids = list(range(500 * number, 500 * (number + 1)))
        table = pa.table({"id": ids, "cents": [id * 7 % 1000 for id in ids]}, schema=orders.schema)
        orders.append(table, producer="example", batch_id=number)


ended = threading.Event()
writer = threading.Thread(target=write_orders, args=(ended,))
writer.start()
stream = stream_from(spark, folder / "orders", consumer="euros", control=folder / "orders.control")
with sluice.attach(spark, policy="ds2", max_executors=4, interval=5, objective="latency<5s"):
    converted = stream.selectExpr("id", "cents / 100.0D AS euros").writeStream.queryName("euros")
    converted = converted.option("checkpointLocation", str(folder / "checkpoint"))
    query = converted.foreachBatch(TopicSink(euros.path, "euros")).start()
    query.awaitTermination(seconds)
    ended.set()
    writer.join()
    query.processAllAvailable()
    query.stop()
spark.stop()
print(f"{orders.end_offset()} records written, {euros.end_offset()} converted")
