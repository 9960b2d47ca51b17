"""Running totals per shop over JSON files that appear in a folder; every scaling is listed at the end.

sluice cluster up --workers 2 --slots 4      # prints the master's address
python examples/files.py spark://127.0.0.1:PORT FOLDER 120
"""

import json
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import sluice

master, folder, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
spark = (
    SparkSession.builder.master(master)
    .appName("files")
    .config("spark.executor.cores", "1")
    .config("spark.executor.memory", "512m")
    .config("spark.cores.max", "4")
    .config("spark.decommission.enabled", "true")
    .config("spark.storage.decommission.enabled", "true")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)


def write_sales(ended: threading.Event) -> None:
    """Stands for whoever brings the files: one per second."""
    number = 0
    while not ended.wait(1.0):
        lines = "".join(json.dumps({"shop": sale % 7, "cents": sale}) + "\n" for sale in range(100))
        (folder / "incoming" / f".{number}").write_text(lines)
        (folder / "incoming" / f".{number}").rename(folder / "incoming" / f"{number}.json")
        number += 1


def write_totals(batch: DataFrame, batch_id: int) -> None:
    """Under the number of its batch: a batch that is repeated after a crash writes the same again."""
    batch.write.mode("overwrite").parquet(str(folder / "totals" / f"batch={batch_id}"))


(folder / "incoming").mkdir(parents=True, exist_ok=True)
sales = spark.readStream.schema("shop INT, cents BIGINT").json(str(folder / "incoming"))
totals = sales.groupBy("shop").sum("cents").withColumnRenamed("sum(cents)", "cents")
ended = threading.Event()
threading.Thread(target=write_sales, args=(ended,), daemon=True).start()
with sluice.attach(spark, policy="ds2", max_executors=4, interval=5, journal=folder / "journal.jsonl"):
    stream = totals.writeStream.outputMode("update").option("checkpointLocation", str(folder / "checkpoint"))
    query = stream.queryName("totals").foreachBatch(write_totals).start()
    query.awaitTermination(seconds)
    ended.set()
    query.processAllAvailable()
    query.stop()
spark.stop()
print(f"sluice explain {folder} tells why executors came and went")
