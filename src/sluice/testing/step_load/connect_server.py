"""A Spark Connect server as a PySpark program, to be run with `sluice submit`: its driver is this process.

connect_server.py READY STOP: makes the file READY when clients may come, and ends when there is a file STOP.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def main(ready: Path, stop: Path) -> None:
    spark = SparkSession.builder.appName("connect-server").getOrCreate()
    ready.touch()
    while not stop.exists():
        time.sleep(0.2)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
