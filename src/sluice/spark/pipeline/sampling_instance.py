"""The process of one sampling instance: runs the operator on its copied input and prints the rate of every batch."""

from __future__ import annotations

import json
import pickle
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.spark.pipeline.compile import call_operator
from sluice.spark.pipeline.failure import Failure
from sluice.spark.pipeline.specs import OperatorSpec
from sluice.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.1


def main() -> None:
    folder, cores, memory_mb, files_per_batch = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    operator: OperatorSpec = pickle.loads((folder / "operator.pickle").read_bytes())
    settings = {"spark.driver.memory": f"{memory_mb}m", "spark.sql.shuffle.partitions": str(cores)}
    with open_session(f"sampling {operator.name}", threads=cores, settings=settings) as spark:
        frames = [_input(spark, folder / "inputs" / name, files_per_batch) for name in operator.inputs]
        query = (
            call_operator(operator, frames)
            .writeStream.format("noop")
            .outputMode(operator.output_mode)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )
        _print_rates(query)


def _input(spark: SparkSession, folder: Path, files_per_batch: int) -> DataFrame:
    schema = spark.read.parquet(str(folder / "0.parquet")).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch).parquet(str(folder))


def _print_rates(query: StreamingQuery) -> None:
    printed = -1
    while query.isActive:
        for progress in query.recentProgress:
            if progress.batchId > printed and progress.numInputRows > 0:
                printed = progress.batchId
                print(json.dumps({"rate": progress.numInputRows / (progress.batchDuration / 1000)}), flush=True)
        time.sleep(POLL_S)
    if (error := query.exception()) is not None:
        raise SystemExit(Failure.of(error).cause)


if __name__ == "__main__":
    main()
