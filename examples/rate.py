"""Events per key and ten seconds, from Spark's rate source: more executors as the rate ramps up.

sluice cluster up --workers 2 --slots 4      # prints the master's address
python examples/rate.py spark://127.0.0.1:PORT 120
"""

import logging
import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr, window

import sluice

master, seconds = sys.argv[1], float(sys.argv[2])
logging.basicConfig(format="%(asctime)s %(message)s")
logging.getLogger("sluice").setLevel(logging.INFO)

spark = (
    SparkSession.builder.master(master)
    .appName("rate")
    .config("spark.executor.cores", "1")
    .config("spark.executor.memory", "512m")
    .config("spark.cores.max", "4")  # a standalone master never gives more: as many as max_executors need
    .config("spark.decommission.enabled", "true")
    .config("spark.storage.decommission.enabled", "true")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)

events = (
    spark.readStream.format("rate")
    .option("rowsPerSecond", 250)
    .option("rampUpTime", "60s")
    .option("numPartitions", 8)
    .load()
    # every event waits 10 ms for something, as a call to a service would: an executor does 100 per second
    .withColumn("answer", expr("reflect('java.lang.Thread', 'sleep', 10L)"))
    .where("answer IS NOT NULL")
)
counts = (
    events.withWatermark("timestamp", "10 seconds")
    .groupBy(window("timestamp", "10 seconds"), (col("value") % 10).alias("key"))
    .count()
)

with (
    tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint,
    sluice.attach(spark, policy="ds2", min_executors=1, max_executors=4, objective="latency<10s"),
):
    query = counts.writeStream.outputMode("update").format("console").option("checkpointLocation", checkpoint).start()
    while not any(batch.numInputRows for batch in query.recentProgress):
        query.awaitTermination(1)  # executors are starting
    query.awaitTermination(seconds)
    query.stop()
spark.stop()
