"""Events per key and ten seconds, from Spark's rate source: a PySpark program that knows nothing of sluice."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr, window

spark = SparkSession.builder.appName("counts").config("spark.sql.shuffle.partitions", "8").getOrCreate()

events = (
    spark.readStream.format("rate")
    .option("rowsPerSecond", 250)
    .option("rampUpTime", "120s")
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
# without a place for its checkpoint a query begins anew; a job that matters has one that outlives its driver
query = counts.writeStream.outputMode("update").format("console").trigger(processingTime="2 seconds").start()
query.awaitTermination()
