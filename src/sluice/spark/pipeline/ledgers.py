"""The ledgers of all operators of a run: batches and samples go in, windows and the count of all records come out."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.control.engine import RecordCount
from sluice.model import Topology
from sluice.spark.internals.queries import ProgressListener
from sluice.spark.observe.events import read_batch
from sluice.spark.observe.probe import StageProbe
from sluice.spark.observe.window import QueryWindow
from sluice.spark.pipeline.ledger import Ledger
from sluice.spark.pipeline.query import QuerySettings
from sluice.spark.pipeline.runtime import Runtime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAST_PROGRESS_S = 5.0


class Ledgers:
    """Spark's listener thread reports batches; everything else is called by the loop's thread. Empty until opened."""

    def __init__(self, spark: SparkSession, runtime: Runtime) -> None:
        self._spark = spark
        self._runtime = runtime
        self._lock = threading.Lock()
        self._listener: ProgressListener | None = None
        self._latency_samples_s: list[float] = []
        self.of: dict[str, Ledger] = {}
        self.state_bytes: dict[str, float] = {}
        """Operator -> size of its state after its last batch."""

    def open(self, topology: Topology, settings: QuerySettings) -> None:
        """One for every query that is about to start."""
        self._stages = StageProbe(self._spark)
        self.of = {
            name: Ledger(
                query=query,
                topics=self._runtime.topics,
                folders=self._runtime.folders,
                is_source=topology.is_source(name),
                trigger_s=settings.trigger_s,
                bound_records=settings.topic_bound_records,
            )
            for name, query in self._runtime.queries.items()
        }
        self._listener = ProgressListener(self._spark, self._on_progress)

    def close(self) -> None:
        if self._listener:
            self._listener.close()

    def sample(self) -> None:
        """Take up the stages that have ended, and how long the oldest record waits."""
        now_s = time.time()
        waited_s = [ledger.waiting_s(now_s) for ledger in self.of.values() if ledger.is_source]
        with self._lock:
            self._latency_samples_s.append(max(waited_s, default=0.0))
            for ledger in self.of.values():
                for run_id in ledger.query.run_ids:
                    ledger.on_stages(self._stages.new_stages(run_id))

    def close_windows(self, interval_s: float) -> tuple[dict[str, QueryWindow], list[float]]:
        """What every operator did since the last call, and the latencies sampled meanwhile."""
        unix_s = time.time()
        with self._lock:
            windows = {name: ledger.close_window(unix_s, interval_s) for name, ledger in self.of.items()}
            samples_s, self._latency_samples_s = self._latency_samples_s, []
        return windows, samples_s

    def on_rescale(self, operators: Iterable[str]) -> None:
        with self._lock:
            for name in operators:
                self.of[name].on_rescale()

    def worker_lost(self) -> None:
        """What it had read may be read again, which is no record twice."""
        with self._lock:
            for ledger in self.of.values():
                ledger.read.worker_lost(time.time())

    def count(self, downtime_s: float) -> RecordCount:
        """Offsets say what should have been read; Spark's own row counts say what was."""
        self._await_last_progress()
        arrived = processed = waiting = lost = duplicated = 0
        for ledger in self.of.values():
            passed = ledger.passed_records()
            lost += max(0, passed - ledger.read_records)
            duplicated += max(0, ledger.read_records - passed)
            if ledger.is_source:
                left = ledger.waiting_records()
                arrived += passed + left
                processed += passed
                waiting += left
        return RecordCount(
            arrived=arrived,
            processed=processed,
            waiting=waiting,
            lost=lost,
            duplicated=duplicated,
            downtime_s=downtime_s,
        )

    def _await_last_progress(self) -> None:
        """Progress events come a moment after their batch; without the last ones its records would look lost."""
        deadline_s = time.monotonic() + LAST_PROGRESS_S
        passed = [(ledger, ledger.passed_records()) for ledger in self.of.values()]
        while time.monotonic() < deadline_s and any(ledger.read_records < count for ledger, count in passed):
            time.sleep(0.05)

    def _on_progress(self, progress: Mapping[str, Any]) -> None:
        """Called in Spark's listener thread."""
        query, batch = self._runtime.query_of_run(progress["runId"]), read_batch(progress)
        if query is None or batch is None:
            return
        query.on_progress(progress)
        if (written := query.written_records(batch.batch_id)) is not None:
            batch = replace(batch, output_records=written)
        with self._lock:
            if batch.state_bytes is not None:
                self.state_bytes[query.name] = batch.state_bytes
            self.of[query.name].on_batch(batch)
