"""The query of a pipeline in real-time mode: from topic to topic with Spark's own connector."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sluice.errors import SluiceError
from sluice.spark.internals.real_time import await_end, end_after_batch, has_ended
from sluice.spark.kafka.connector import java_settings
from sluice.spark.kafka.log import KafkaPosition, KafkaTopic
from sluice.spark.pipeline.failure import Failure
from sluice.spark.pipeline.folders import Folders, QueryState, source_offsets
from sluice.spark.real_time.plan import RealTimePlan
from sluice.spark.session import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

END_TIMEOUT_S = 60.0
"""Beyond the length of a batch, for what is committed at its end."""
START_TIMEOUT_S = 60.0
POLL_S = 0.02
SETTINGS = {
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # it would wait for the end of a stream that has none
    "spark.sql.execution.sortBeforeRepartition": "false",
}


class RealTimeQuery:
    def __init__(
        self,
        plan: RealTimePlan,
        spark: SparkSession,
        folders: Folders,
        *,
        source: KafkaTopic,
        sink: KafkaTopic,
        batch_s: float,
        state: QueryState,
    ) -> None:
        self.plan = plan
        self.state = state
        self._spark = spark
        self._checkpoint = folders.checkpoint(plan.name)
        self._source = source
        self._sink = sink
        self._batch_s = batch_s
        self._streaming: StreamingQuery | None = None
        self._start_failure: Failure | None = None
        self.run_ids: list[str] = []
        self.restarts_in_a_row = 0

    def start(self) -> None:
        """Start or go on from the checkpoint; returns when its first batch has begun."""
        self._start_failure = None
        broker = self._source.broker
        messages = (
            self._spark.readStream.format("kafka")
            .options(**java_settings(broker), **{"kafka.isolation.level": "read_committed"})
            .option("subscribe", self._source.name)
            .option("startingOffsets", "earliest")
            .load()
            .select("value")
        )
        writer = (
            self.plan.build(messages, self.state.parallelism)
            .writeStream.format("kafka")
            .options(**java_settings(broker), topic=self._sink.name)
            .outputMode("update")
            .option("checkpointLocation", str(self._checkpoint))
        )
        # the types of pyspark 4.3 do not have this trigger yet
        trigger: Any = writer.trigger
        writer = trigger(realTime=f"{self._batch_s:g} seconds")
        settings = {**SETTINGS, "spark.sql.shuffle.partitions": str(self.state.state_partitions)}
        with session_settings(self._spark, settings, pool=self.plan.name):
            self._streaming = writer.start()
        self.run_ids = [*self.run_ids[-1:], str(self._streaming.runId)]
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while self.is_active and not self._streaming.status["isTriggerActive"] and time.monotonic() < deadline_s:
            time.sleep(POLL_S)

    @property
    def is_active(self) -> bool:
        return self._streaming is not None and bool(self._streaming.isActive)

    def stop_at_boundary(self) -> float:
        """Let the running batch finish and be committed; how long that took. It goes on to answer until then."""
        if self._streaming is None or has_ended(self._streaming):
            return 0.0
        began_s = time.monotonic()
        end_after_batch(self._spark, self._streaming)
        if not await_end(self._streaming, self._batch_s + END_TIMEOUT_S):
            self._streaming.stop()
            raise SluiceError(f"the batch of {self.plan.name!r} did not end within {END_TIMEOUT_S:g} s of its time")
        return time.monotonic() - began_s

    def set_parallelism(self, parallelism: int) -> None:
        """From its next start on."""
        self.state = self.state.model_copy(update={"parallelism": parallelism})

    def committed_position(self) -> KafkaPosition:
        """Where the last committed batch ended; empty before the first."""
        return source_offsets(self._checkpoint).get(self._source.name, {})

    def failure(self) -> Failure | None:
        if self._start_failure is not None or self._streaming is None or self._streaming.isActive:
            return self._start_failure
        error = self._streaming.exception()
        return None if error is None else Failure.of(error)

    def fail(self, error: Exception) -> None:
        self._start_failure = Failure.of(error)
