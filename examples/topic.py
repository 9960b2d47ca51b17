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
from sluice import ReaderControl, Topic, TopicSink, stream_from

master, folder, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
spark = (
    SparkSession.builder.master(master)
    .appName("topic")
    .config("spark.executor.cores", "1")
    .config("spark.executor.memory", "512m")
    .config("spark.cores.max", "4")
    .config("spark.decommission.enabled", "true")
    .config("spark.storage.decommission.enabled", "true")
    .getOrCreate()
)
orders = Topic.create(folder / "orders", pa.schema([("id", pa.int64()), ("cents", pa.int64())]))
euros = Topic.create(folder / "euros", pa.schema([("id", pa.int64()), ("euros", pa.float64())]))
# eight tasks per batch, each paced to 200 records/s: four executors of a laptop are then worth four
ReaderControl(partitions=8, slot_rate=200.0).save(folder / "orders.control")


def write_orders(ended: threading.Event) -> None:
    """Stands for whoever writes the topic: 500 records per second."""
    for number in itertools.takewhile(lambda _: not ended.wait(1.0), itertools.count()):
        ids = pa.array(range(500 * number, 500 * (number + 1)))
        orders.append(pa.table([ids, ids], schema=orders.schema), producer="example", batch_id=number)


writer = threading.Thread(target=write_orders, args=(ended := threading.Event(),), daemon=True)
writer.start()
stream = stream_from(spark, folder / "orders", consumer="euros", control=folder / "orders.control")
written = stream.selectExpr("id", "cents / 100.0D AS euros").writeStream.queryName("euros")
written = written.option("checkpointLocation", str(folder / "checkpoint")).foreachBatch(TopicSink(euros.path, "euros"))
with sluice.attach(spark, policy="ds2", max_executors=4, interval=5, objective="latency<5s"):
    query = written.start()
    query.awaitTermination(seconds)
    ended.set()
    writer.join()
    query.processAllAvailable()
    query.stop()
spark.stop()
print(f"{orders.end_offset()} records written, {euros.end_offset()} converted")
