"""A source that is no topic: a query of its own brings its records into the first topic, each batch once.

The operators behind it then have what all have: an exact lag, and a parallelism that changes without a stop. The inflow
itself runs with the tasks its source plans. Exactly once holds if the source can give a batch again, as Spark's own do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sluice.errors import BadInputError
from sluice.spark.pipeline.compile import read_source
from sluice.spark.pipeline.failure import Failure, OperatorFailedError, Restart
from sluice.spark.pipeline.folders import Folders
from sluice.spark.pipeline.specs import SourceSpec
from sluice.spark.session import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sluice.spark.pipeline.query import QuerySettings
    from sluice.spark.topic.interface import BatchSink


class Inflow:
    """Started again when it fails, as operators are. Stopping it inside a batch is safe: the batch is replayed."""

    def __init__(
        self,
        spec: SourceSpec,
        spark: SparkSession,
        folders: Folders,
        settings: QuerySettings,
        make_sink: Callable[[], BatchSink],
    ) -> None:
        self.name = spec.name
        self._spec = spec
        self._spark = spark
        self._checkpoint = folders.checkpoint(f"source.{spec.name}")
        self._trigger_s = settings.trigger_s
        self._make_sink = make_sink
        self._streaming: StreamingQuery | None = None
        self._restarts_in_a_row = 0
        self._restarted_batch = -1
        self._due_s: float | None = None

    def start(self) -> None:
        """With a new sink: its first batch may have been written before."""
        writer = (
            read_source(self._spec, self._spark)
            .writeStream.foreachBatch(self._make_sink())
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{round(self._trigger_s * 1000)} milliseconds")
        )
        with session_settings(self._spark, {}, pool=self.name):
            self._streaming = writer.start()

    def restart_if_failed(self) -> Restart | None:
        """To be called every second; raises OperatorFailedError where another start cannot help."""
        if self._streaming is None or self._streaming.isActive or (error := self._streaming.exception()) is None:
            return None
        failure = Failure.of(error)
        if (last := self._streaming.lastProgress) is not None and last.batchId > self._restarted_batch:
            self._restarts_in_a_row, self._restarted_batch = 0, last.batchId
        pause_s = failure.pause_s(self._restarts_in_a_row)
        if pause_s is None:
            raise OperatorFailedError(self.name, failure, self._restarts_in_a_row)
        self._due_s = self._due_s or time.monotonic() + pause_s
        if time.monotonic() < self._due_s:
            return None
        self._due_s = None
        self._restarts_in_a_row += 1
        try:
            self.start()
        except BadInputError as problem:
            raise OperatorFailedError(self.name, Failure.of(problem), self._restarts_in_a_row) from problem
        return Restart(operator=self.name, unix_s=time.time(), cause=failure.cause, in_a_row=self._restarts_in_a_row)

    def stop(self) -> None:
        if self._streaming is not None:
            self._streaming.stop()
