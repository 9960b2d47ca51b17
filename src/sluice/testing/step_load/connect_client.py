"""A client of Spark Connect with a streaming query of its own; needs pyspark[connect] and nothing of sluice.

connect_client.py REMOTE ROOT: reads lines from ROOT/in, writes them to ROOT/out, ends when there is a file ROOT/end.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

RECORD_MS = 10


def main(remote: str, root: Path) -> None:
    spark = SparkSession.builder.remote(remote).getOrCreate()
    paced = f"reflect('java.lang.Thread', 'sleep', {RECORD_MS}L) AS paced"
    lines = spark.readStream.schema("line STRING").text(str(root / "in")).repartition(8)
    query = (
        lines.selectExpr("line", paced)
        .where("paced IS NOT NULL")
        .select("line")
        .writeStream.format("text")
        .queryName("client")
        .option("path", str(root / "out"))
        .option("checkpointLocation", str(root / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )
    while not (root / "end").exists():
        if not query.isActive:
            sys.exit(f"the query ended: {query.exception()}")
        time.sleep(0.5)
    query.processAllAvailable()
    query.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
