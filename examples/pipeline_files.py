"""Sales per shop and minute, from JSON files that appear in a folder to Parquet files in another.

sluice run examples/pipeline_files.py --engine spark --policy ds2 --root work
"""

from pyspark.sql.functions import sum, window

from sluice import Pipeline

sales = Pipeline("sales")


@sales.source
def tickets(spark):
    return spark.readStream.schema("shop STRING, amount DOUBLE, at TIMESTAMP").json("in")


@sales.operator(watermark=("at", "10 seconds"))
def per_minute(tickets):
    return tickets.groupBy(window("at", "1 minute"), "shop").agg(sum("amount").alias("amount"))


sales.sink("out", per_minute, format="parquet", path="out")
